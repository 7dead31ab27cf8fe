"""Compiles the kernels ahead of time: `python -m binlane.kernels.build`.

Needs numba, setuptools, a C compiler and Python's headers, which running binlane does not.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from binlane.kernels.load import compiled_name, kernel_modules, writable_folder


def build(folder: Path) -> list[Path]:
    """Compile what is missing and remove what is out of date.

    Args:
        folder: Where the compiled modules go.

    Returns:
        The modules that were made.

    Raises:
        ImportError: If setuptools is missing.
        OSError: If the C compiler or the folder cannot be used.
    """
    made = []
    for name in kernel_modules():
        path = folder / (compiled_name(name) + EXTENSION_SUFFIXES[0])
        if path.exists():
            continue
        _compile(name, folder)
        for old in folder.glob(f"_compiled_{name}_*"):
            is_of_another = old.name.count("_") != path.name.count("_")
            if old != path and not is_of_another:
                old.unlink()
        made.append(path)
    return made


def _compile(name: str, folder: Path) -> None:
    with warnings.catch_warnings():
        # numba announces that another way will replace this one some day.
        warnings.simplefilter("ignore")
        pycc: Any = import_module("numba.pycc")  # the warning comes from the import
        module = import_module(f"{__package__}.{name}")
        compiler = pycc.CC(compiled_name(name), source_module=module)
        compiler.output_dir = str(folder)
        # Not for its speed: code that mixes old vector instructions with isal's new ones is slow.
        compiler.target_cpu = "host"
        compiler.use_nrt = False  # kernels allocate nothing, and it would need a C++ compiler
        for function, signature in module.EXPORTS:
            compiler.export(function.__name__, signature)(function)
        compiler.compile()


def main() -> int:
    """Build into the package's folder, or the user's cache where that cannot be written."""
    if find_spec("setuptools") is None:
        sys.stderr.write("binlane: kernels are not compiled ahead: setuptools is missing\n")
        return 1
    for path in build(writable_folder()):
        sys.stderr.write(f"made {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

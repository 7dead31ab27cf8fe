"""Compiles the kernels ahead of time: `python -m binlane.log.kernels.build`.

Needs numba, setuptools, a C compiler and Python's headers, which running binlane does not. Modules
are compiled side by side, a process a core. Each comes into its folder whole, by renaming, so that
builds may run at the same time and be killed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from binlane.log.kernels.load import (
    FOLDER,
    Target,
    compiled_name,
    kernel_modules,
    portable_cpu,
    writable_folder,
)

_BUILDING: Final = ".building-"
_ABANDONED_S: Final = 3600


class BuildError(Exception):
    """The kernels cannot be compiled here."""


def build(folder: Path, target: Target = Target.HOST) -> Iterator[Path]:
    """Compile missing modules, and remove outdated ones.

    Args:
        folder: The folder of the compiled modules.
        target: The processors they are for.

    Yields:
        Each module that was made, once it is in its place.

    Raises:
        BuildError: If something is missing that this needs, or a compiler fails.
        OSError: If the folder cannot be used.
    """
    missing = {
        name: path
        for name in kernel_modules()
        if not (path := folder / (compiled_name(name, target) + EXTENSION_SUFFIXES[0])).exists()
    }
    if not missing:
        return
    if lacks := missing_tools():
        raise BuildError(f"missing: {', '.join(lacks)}")
    _remove_abandoned(folder)
    with tempfile.TemporaryDirectory(prefix=_BUILDING, dir=folder) as place:
        for name, made in _compile(missing, target, place):
            made.replace(missing[name])
            _remove_others(missing[name], name, target)
            yield missing[name]


def missing_tools() -> list[str]:
    """Return the names of modules and programs that compiling needs and this machine lacks."""
    modules = [name for name in ("numba", "setuptools") if find_spec(name) is None]
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    programs = [] if shutil.which(compiler) else [f"a C compiler ({compiler})"]
    header = Path(sysconfig.get_path("include")) / "Python.h"
    return modules + programs + ([] if header.exists() else ["Python's headers (Python.h)"])


def _compile(modules: Iterable[str], target: Target, place: str) -> Iterator[tuple[str, Path]]:
    cpu = "host" if target is Target.HOST else portable_cpu()
    # The longest take longest, and begin first.
    largest_first = sorted(modules, key=lambda name: -(FOLDER / f"{name}.py").stat().st_size)
    processes = min(len(os.sched_getaffinity(0)), len(largest_first))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running = {
            pool.submit(_compile_one, name, compiled_name(name, target), cpu, place): name
            for name in largest_first
        }
        for done in as_completed(running):
            if error := done.exception():
                pool.shutdown(cancel_futures=True)
                raise BuildError(f"{running[done]}: {type(error).__name__}: {error}") from error
            yield running[done], done.result()


def _compile_one(name: str, compiled: str, cpu: str, place: str) -> Path:
    # In a process of its own, since this changes numba.
    from binlane.log.kernels.compiling import compile_module  # noqa: PLC0415

    return compile_module(name, compiled, cpu, place)


def _remove_abandoned(folder: Path) -> None:
    """Remove the folders of builds that were killed long ago."""
    for place in folder.glob(f"{_BUILDING}*"):
        if time.time() - place.stat().st_mtime > _ABANDONED_S:
            shutil.rmtree(place, ignore_errors=True)


def _remove_others(path: Path, name: str, target: Target) -> None:
    """Remove forms for the same target that were made of other sources, or elsewhere."""
    form = re.compile(rf"_{target.value}_{name}_[0-9a-f]{{16}}\..*")
    for old in path.parent.iterdir():
        if old != path and form.fullmatch(old.name):
            old.unlink(missing_ok=True)


def main() -> int:
    """Build into the package's folder, or the user's cache where that cannot be written."""
    try:
        for path in build(writable_folder()):
            sys.stderr.write(f"made {path}\n")
    except (BuildError, OSError) as error:
        sys.stderr.write(f"binlane: kernels are not compiled: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

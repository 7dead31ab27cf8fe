"""One kernel module → one extension module, by numba's ahead-of-time compiler.

By itself that compiler makes machine code of every helper, for a call that never comes, and then
optimises the helper again within each function that calls it, directly or not: most of its time.
Here helpers stay what numba's front end made of them, and are linked and optimised once, in the
module. Only processes that do nothing else may import this: it changes numba for all of them.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    # numba announces that another way will replace this one some day.
    warnings.simplefilter("ignore")
    pycc: Any = import_module("numba.pycc")
codegen: Any = import_module("numba.core.codegen")
dispatcher: Any = import_module("numba.core.dispatcher")
toolchain: Any = import_module("numba.pycc.platform")


class _Helper(codegen.JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """A helper's functions: neither linked nor optimised by themselves, never run."""

    def _ensure_finalized(self) -> None:
        """Do nothing: the library is final already."""

    def get_pointer_to_function(self, name: str) -> int:
        """No address, since there is no machine code."""
        del name
        return 0


class _Whole(codegen.AOTCodeLibrary):  # type: ignore[misc]  # as above
    """A module, or a library that numba needs in one; `finalize` is called for modules only."""

    def _ensure_finalized(self) -> None:
        """Do nothing, as in a helper."""

    def finalize(self) -> None:
        """Link all needed libraries, also indirect ones, and optimise the whole."""
        # A function that nobody calls yet is dropped when it is linked: callers before callees.
        self._linking_libraries = list(reversed(_in_order_of_need(self)))[1:]
        super().finalize()


def _in_order_of_need(library: Any) -> list[Any]:
    """Return all libraries that one needs, each behind those that it needs, itself last."""
    found: dict[Any, None] = {}

    def visit(each: Any) -> None:
        for needed in each._linking_libraries:  # noqa: SLF001 - there is no other way to ask
            if needed not in found:
                visit(needed)
        found[each] = None

    visit(library)
    return list(found)


def _without_wrappers(_compiler: Any, flags: Any) -> Any:
    """No helper is called from Python or C."""
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    return flags


codegen.JITCPUCodegen._library_class = _Helper  # noqa: SLF001 - numba offers no setting for it
codegen.JITCPUCodegen.set_env = lambda *_: None  # it has an address with the machine code only
codegen.AOTCPUCodegen._library_class = _Whole  # noqa: SLF001 - as above
# It also tries a C++ compiler, which nothing here needs.
toolchain.external_compiler_works = lambda: True
dispatcher._FunctionCompiler._customize_flags = _without_wrappers  # noqa: SLF001 - as above


def compile_module(name: str, compiled: str, cpu: str, folder: str) -> Path:
    """Compile a kernel module and try to load the result.

    Args:
        name: The name of the module beside this one.
        compiled: Name of the extension module.
        cpu: LLVM's name of the processor; `host` is this one.
        folder: The folder of the extension module.

    Returns:
        Its file.

    Raises:
        Exception: Whatever numba, the C compiler and the linker raise.
    """
    # The code around kernels is C of numba that runs once a call.
    os.environ["CFLAGS"] = f"{os.environ.get('CFLAGS', '')} -O1"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's notes on its own doings
        module = import_module(f"{__package__}.{name}")
        compiler = pycc.CC(compiled, source_module=module)
        compiler.output_dir = folder
        compiler.target_cpu = cpu
        compiler.use_nrt = False  # kernels allocate nothing
        for function, signature in module.EXPORTS:
            compiler.export(function.__name__, signature)(function)
        compiler.compile()
    made: Path = Path(folder) / compiler.output_file
    sys.setdlopenflags(os.RTLD_NOW)  # a function that is missing is missed now
    loader = ExtensionFileLoader(compiled, str(made))
    spec = spec_from_file_location(compiled, made, loader=loader)
    assert spec is not None, "a path and a loader make a spec"
    loader.exec_module(module_from_spec(spec))
    return made

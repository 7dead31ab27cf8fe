"""The kernels, in the fastest form that is there: compiled ahead, else by numba now.

Compiled modules lie beside the sources, or in the user's cache where that folder cannot be
written. Their names hold a hash of the sources, of Python's version and, but for those that a wheel
brings, of what the processor can do, so that one that does not fit is never found. With them
nothing imports numba.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

_IN_ARCHIVE: Final = Path("binlane", "log", "kernels")


def folder_of(package: Path) -> Path:
    """The folder of the kernels, as files.

    Args:
        package: The place that the package's modules name as theirs; perhaps inside of an archive.

    Raises:
        OSError: If an archive cannot be unpacked: neither beside it nor for temporary files is room.
    """
    if package.is_dir():
        return package
    # Few are imported from an archive, and everybody asks.
    import tempfile  # noqa: PLC0415

    archive = package.parents[2].absolute()
    facts = archive.stat()
    name = f"{archive.name}.{facts.st_size}-{facts.st_mtime_ns}.kernels"
    try:
        return _unpacked(archive, archive.parent / name)
    except PermissionError:
        # Of this process alone: in a folder for everybody somebody else could have put them there.
        return _unpack(archive, Path(tempfile.mkdtemp(prefix="binlane-kernels-")))


def _unpacked(archive: Path, place: Path) -> Path:
    """The folder beside an archive; comes whole, by renaming, since processes start together."""
    if place.is_dir():
        return place / _IN_ARCHIVE
    import shutil  # noqa: PLC0415 - as above
    import tempfile  # noqa: PLC0415 - as above

    unfinished = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
    try:
        _unpack(archive, unfinished)
        unfinished.rename(place)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not place.is_dir():
            raise
    return place / _IN_ARCHIVE


def _unpack(archive: Path, place: Path) -> Path:
    import zipfile  # noqa: PLC0415 - as above

    prefix = f"{_IN_ARCHIVE.as_posix()}/"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(place, [name for name in packed.namelist() if name.startswith(prefix)])
    return place / _IN_ARCHIVE


FOLDER: Final = folder_of(Path(__file__).parent)
_LISTS_KERNELS: Final = b"\nEXPORTS: "
_IMPORT: Final = re.compile(rb"^from binlane\.log\.kernels(?:\.| import )(\w+)", re.MULTILINE)
_TOOLS: Final = frozenset({"__init__.py", "archive.py", "load.py", "build.py", "compiling.py"})
# LLVM's name of the processor that portable modules need, and how Linux names what it can do. Less
# than AVX would run everywhere, but code that mixes old vector instructions with isal's is slow.
_PORTABLE_CPUS: Final = {
    "x86_64": ("x86-64-v3", frozenset({"abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})),
}
_ANY_CPU: Final = ("", frozenset[str]())


class Build(Enum):
    """The form in which kernels run."""

    COMPILED = "compiled"
    JIT = "jit"
    PLAIN = "plain"


class Target(Enum):
    """The processors that a compiled module is for."""

    HOST = "compiled"
    """This very one."""
    PORTABLE = "portable"
    """All but old ones of this machine's architecture: what a wheel brings."""


class Kernels:
    """The kernels as attributes, each loaded or compiled at its first use.

    Args:
        build: The form in which they shall run; if None compiled ahead, or by numba where that is
            missing.
    """

    def __init__(self, build: Build | None) -> None:
        self._build = build

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        for module in kernel_modules():
            # Without looking first, a module that is not compiled would be imported for nothing.
            if f"\ndef {name}(".encode() not in _sources()[module]:
                continue
            kernel = self._find(module, name)
            if kernel is not None:
                setattr(self, name, kernel)
                return kernel
        raise AttributeError(f"no kernel is called {name}")

    def _find(self, module: str, name: str) -> Callable[..., Any] | None:
        compiled = None if self._build in {Build.JIT, Build.PLAIN} else compiled_module(module)
        if compiled is not None:
            found: Callable[..., Any] | None = getattr(compiled, name, None)
            return found
        if self._build is Build.COMPILED:
            return None
        for function, signature in import_module(f"{__package__}.{module}").EXPORTS:
            if function.__name__ == name:
                return function if self._build is Build.PLAIN else _jit(function, signature, module)
        return None


_chosen: list[Kernels] = []


def kernels() -> Any:
    """The kernels; `kernels().scan(…)` calls one."""
    if not _chosen:
        _chosen.append(Kernels(None))
    return _chosen[-1]


@contextmanager
def running(build: Build) -> Iterator[Any]:
    """Run kernels in a certain form, for comparing them."""
    _chosen.append(Kernels(build))
    try:
        yield _chosen[-1]
    finally:
        _chosen.pop()


def builds() -> tuple[Build, ...]:
    """The forms that can run here."""
    built = (Build.JIT, Build.PLAIN) if can_jit() else ()
    return (Build.COMPILED, *built) if is_compiled(kernel_modules()) else built


def is_compiled(modules: Iterable[str]) -> bool:
    """True if compiled kernel modules exist; nothing is compiled or loaded to find out."""
    return all(_compiled_file(module) is not None for module in modules)


@cache
def kernel_modules() -> tuple[str, ...]:
    """Names of the modules that list kernels."""
    return tuple(sorted(name for name, source in _sources().items() if _LISTS_KERNELS in source))


def can_jit() -> bool:
    """True if numba is installed, so that missing kernels can be compiled now.

    With `NUMBA_DISABLE_JIT`, numba's own variable, nobody looks for it: it may be on its way into its place.
    """
    is_disabled = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}
    return not is_disabled and find_spec("numba") is not None


@cache
def compiled_module(name: str) -> ModuleType | None:
    """Return the compiled form of a kernel module; None if none fits the sources."""
    path = _compiled_file(name)
    if path is None:
        return None
    stem = path.name.removesuffix(EXTENSION_SUFFIXES[0])
    loader = ExtensionFileLoader(stem, str(path))
    spec = spec_from_file_location(stem, path, loader=loader)
    assert spec is not None, "a path and a loader make a spec"
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _compiled_file(name: str) -> Path | None:
    """The file of a compiled kernel module, which is not loaded; None if none fits the sources."""
    for target in Target:
        if target is Target.PORTABLE and not _runs_portable(platform.machine(), _processor()):
            continue
        for folder in folders():
            path = folder / (compiled_name(name, target) + EXTENSION_SUFFIXES[0])
            # Not `exists`, which fails in a folder that this user may not look into.
            if os.access(path, os.R_OK):
                return path
    return None


@cache
def compiled_name(name: str, target: Target = Target.HOST) -> str:
    """Name of a compiled form of a kernel module: `_compiled_scan_0123456789abcdef`."""
    digest = hashlib.sha256(_made_for(target, _processor()).encode())
    for source in sorted(_needed_by(name)):
        digest.update(_sources()[source])
    return f"_{target.value}_{name}_{digest.hexdigest()[:16]}"


def _made_for(target: Target, processor: str) -> str:
    """Return everything that makes two compilations of the same sources differ."""
    if target is Target.HOST:
        return f"{sys.version} {processor}"
    return f"{sys.implementation.cache_tag} {portable_cpu()} {platform.machine()}"


def portable_cpu() -> str:
    """LLVM's name of the processor that portable modules need; empty for any."""
    return _PORTABLE_CPUS.get(platform.machine(), _ANY_CPU)[0]


def _runs_portable(machine: str, processor: str) -> bool:
    """True if a processor is not too old for portable modules."""
    return _PORTABLE_CPUS.get(machine, _ANY_CPU)[1] <= frozenset(processor.split())


@cache
def _processor() -> str:
    """Return the processor's features as the system names them; kernels are compiled for them."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as facts:
            return next((line for line in facts if line.startswith(("flags", "Features"))), "")
    except OSError:
        return platform.processor()


def _needed_by(name: str) -> set[str]:
    """Return a module and its neighbours that it imports, directly or not."""
    found, waiting = set(), [name]
    while waiting:
        module = waiting.pop()
        found.add(module)
        imported = {match.decode() for match in _IMPORT.findall(_sources()[module])}
        waiting += imported & _sources().keys() - found
    return found


@cache
def _sources() -> dict[str, bytes]:
    """Return the sources of the kernels, by module name."""
    return {
        path.stem: path.read_bytes()
        for path in sorted(FOLDER.glob("*.py"))
        if path.name not in _TOOLS
    }


def folders() -> tuple[Path, ...]:
    """Return the folders of compiled modules: that of the sources, and in the user's cache, if any."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a user without a name, as containers have them
        return (FOLDER,)
    return FOLDER, base / "binlane" / "kernels"


def writable_folder() -> Path:
    """The first of the folders that can be written.

    Raises:
        OSError: If none can.
    """
    for folder in folders():
        if folder.is_dir() and os.access(folder, os.W_OK):
            return folder
    folder = folders()[-1]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _jit(function: Callable[..., Any], signature: str, module: str) -> Callable[..., Any]:
    from numba import njit  # noqa: PLC0415 - half a second, which only this form of kernels needs

    with _numba_cache(compiled_name(module)) as is_there, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba's notes on its own doings
        compiled: Callable[..., Any] = njit(signature, cache=is_there, nogil=True)(function)
    return compiled


@contextmanager
def _numba_cache(stem: str) -> Iterator[bool]:
    """Set numba's cache to a folder for these sources; False if nothing can be written."""
    config: Any = import_module("numba.core.config")  # as above

    before = config.CACHE_DIR
    try:
        folder = writable_folder() / "__pycache__" / stem
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        yield False
        return
    config.CACHE_DIR = str(folder)
    try:
        yield True
    finally:
        config.CACHE_DIR = before

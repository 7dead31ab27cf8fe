"""The folder of this package's files: also where Python imports them from an archive.

Spark brings archives to its workers (`--py-files`). Python imports sources from them, but compiled
modules are files that the system loads, so those of an archive are unpacked beside it, once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

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
    """Return the folder beside an archive; renaming makes it at once, for parallel starts."""
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

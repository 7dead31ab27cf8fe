"""Shipping binlane to workers that lack it: an archive of this code, kernels included.

Spark brings the archive to every Python worker of the session. Sources are imported from it;
compiled kernels, which must be files, are unpacked beside it by `kernels.archive`.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final

from pyspark import SparkFiles
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from binlane.log.kernels.load import Target, compiled_name, folders, kernel_modules
from binlane.tables.spark.session import is_local
from binlane.tables.spark.source import BinlogDataSource

ARCHIVE_NAME: Final = "binlane.zip"
_PACKAGES: Final = ("binlane", "pyspark_binlane")
_SHIPPED_SETTING: Final = "spark.binlane.ship"


def write_archive(path: Path) -> None:
    """Write an archive of the installed packages, for `--py-files`.

    Raises:
        OSError: If it cannot be written.
    """
    root = _root()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in _files(root):
            archive.write(file, file.relative_to(root).as_posix())
        for file in _compiled():
            archive.write(file, f"binlane/log/kernels/{file.name}")


def ship(spark: SparkSession) -> None:
    """Ship binlane to the workers of a session that run on other machines.

    Nothing is done where the workers are processes of this machine's Python, where binlane itself
    was brought here as an archive, or if `spark.binlane.ship` is `false`, because the workers'
    Python has it.
    """
    context = spark.sparkContext
    is_wanted = context.getConf().get(_SHIPPED_SETTING, "true") != "false"
    if not is_wanted or is_local(context.master) or not _root().is_dir():
        return
    # Spark serves the file from where it lies, for as long as the session lasts.
    folder = Path(SparkFiles.getRootDirectory()) / "shipped"
    if folder.exists():
        return
    folder.mkdir()
    write_archive(folder / ARCHIVE_NAME)
    before = list(sys.path)
    context.addPyFile(str(folder / ARCHIVE_NAME))
    sys.path[:] = before  # here it is imported from where it always was
    # Spark looks for sources with the workers' Python, which finds none; one that is registered is
    # read with what was brought. Where that Python has binlane, Spark knows the source already.
    with suppress(AnalysisException):
        spark.dataSource.register(BinlogDataSource)


def _root() -> Path:
    """The folder, or archive, that the packages are in."""
    return Path(__file__).parents[3]


def _files(root: Path) -> Iterator[Path]:
    for package in _PACKAGES:
        for file in sorted((root / package).rglob("*")):
            is_compiled = file.suffix in {".pyc", ".so"}
            if file.is_file() and not is_compiled and "__pycache__" not in file.parts:
                yield file


def _compiled() -> Iterator[Path]:
    """The kernels of these sources, for any processor that they were compiled for."""
    for module in kernel_modules():
        for target in Target:
            name = compiled_name(module, target) + EXTENSION_SUFFIXES[0]
            for path in (folder / name for folder in folders()):
                if path.exists():
                    yield path
                    break

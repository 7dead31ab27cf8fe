"""The engine of a landing on Spark: works are tasks of a Spark job, a partition each.

A work is a few hundred bytes that say what to read and where to write; a result says what was
written. So the JVM moves works and results, and no row. A work that fails for want of something
outside (a connection, a machine) is raised in its task, which Spark then tries again, elsewhere if
it can; what binlane itself finds wrong would be wrong again, so it travels back as a result.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Final, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it tells no types
from pyspark import SparkFiles, TaskContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import BinaryType

from binlane.errors import BinlaneError, PeerError, StoreError
from binlane.log.kernels.load import Target, compiled_name, folders, kernel_modules
from binlane.tables.landing.engine import SMALL_BYTES
from binlane.tables.spark.failures import readable
from binlane.tables.spark.merger import SparkMerger, merge_settings
from binlane.tables.spark.source import BinlogDataSource
from binlane.tables.spark.spark_session import build_session, is_local

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


Work = TypeVar("Work")
Result = TypeVar("Result")
_PASSING: Final = (PeerError, StoreError)
_ATTEMPTS_DEFAULT: Final = 4
_ATTEMPTS_LOCAL: Final = 1
_SMALL_BYTES_SETTING: Final = "spark.binlane.smallBytes"


class SparkEngine:
    """Runs works as Spark jobs.

    Args:
        spark: A session; binlane is brought to its workers, see `shipping.ship`.

    Attributes:
        merger: Spark's own MERGE, if the session is to merge.
    """

    def __init__(self, spark: SparkSession) -> None:
        ship(spark)
        self._spark = spark
        context = spark.sparkContext
        # A local master tries once, unless it says how often: local[2,4].
        default = _ATTEMPTS_LOCAL if is_local(context.master) else _ATTEMPTS_DEFAULT
        settings = context.getConf()
        self._attempts = int(settings.get("spark.task.maxFailures") or default)
        self.merger = SparkMerger.of(spark)
        self._small_bytes = int(settings.get(_SMALL_BYTES_SETTING) or SMALL_BYTES)

    def run(self, function: Callable[[Work], Result], works: Sequence[Work]) -> Iterator[Result]:
        """Run a function over works, each in a task of its own.

        Works that have few bytes together are done here, since a job costs more than they do.

        An attempt that is lost with its executor, or overtaken by a speculative one, may have done
        its work all the same: only the files and rows that a result names count.

        Args:
            function: A function in a module that the workers can import.
            works: Arguments of the function, which can be pickled.

        Yields:
            The results, in the order of the works.

        Raises:
            BinlaneError: The first, in the order of works, that a work raised; or one that tells
                the trouble with the cluster.
        """
        sizes = [getattr(work, "size_bytes", None) for work in works]
        if None not in sizes and sum(sizes) < self._small_bytes:  # type: ignore[arg-type]  # no None
            yield from map(function, works)
            return
        count = len(works)
        if not count:
            return
        task = _Task(function, [pickle.dumps(work) for work in works], self._attempts)
        context = self._spark.sparkContext
        context.setJobDescription(f"binlane: {function.__name__}, {count} works")
        try:
            # Each partition has one row, since there are as many rows as partitions.
            numbers = self._spark.range(0, count, 1, count)
            rows = numbers.select("id", task.column("id")).collect()
        except (PySparkException, Py4JError) as error:
            raise readable(error) from None
        finally:
            context.setJobDescription(None)  # type: ignore[arg-type]  # takes it away
        results: dict[int, bytearray] = dict(rows)
        for number in range(count):
            result = pickle.loads(results.pop(number))  # noqa: S301 - what our own tasks pickled
            if isinstance(result, BinlaneError):
                raise result
            yield result

    @property
    def cores(self) -> int:
        """The number of tasks that run at the same time, as far as Spark knows it; it may grow."""
        return int(self._spark.sparkContext.defaultParallelism)


@contextmanager
def spark_engine(master: str, settings: Mapping[str, str]) -> Iterator[SparkEngine]:
    """An engine with a session of its own; the session's log is kept if something fails.

    Args:
        master: Spark's master URL, such as `local[4]`.
        settings: Settings of the session, see `session.session_settings`.

    Raises:
        ConfigError: If there is no Java that Spark can use.
        BinlaneError: If the session does not come about.
    """
    log_file = Path(tempfile.mkstemp(prefix="binlane-spark-", suffix=".log")[1])
    try:
        try:
            spark = build_session(master, settings=merge_settings(settings), log_file=log_file)
        except (PySparkException, Py4JError) as error:
            raise readable(error) from None
        try:
            yield SparkEngine(spark)
        finally:
            spark.stop()
    except BinlaneError as error:
        if type(error) is BinlaneError:  # what is not understood further
            error.hint = "; ".join(filter(None, (error.hint, f"Spark's log: {log_file}")))
        raise
    log_file.unlink()


class _Task:
    """The function that Spark runs on workers.

    Args:
        function: Called with each work of the task.
        works: All works of the job, pickled each: a task unpickles its own.
        attempts: Number of times that Spark tries a task.
    """

    def __init__(
        self, function: Callable[[Work], Result], works: Sequence[bytes], attempts: int
    ) -> None:
        self._function = function
        self._works = works
        self._attempts = attempts

    def column(self, number: str) -> Column:
        """The results, pickled, for the numbers of works in a column."""
        # Row by row and without Arrow, which would ask for pandas, for the sake of a row a task.
        return udf(self._run, BinaryType(), useArrow=False).asNondeterministic()(number)

    def _run(self, number: int) -> bytes:
        return pickle.dumps(self._result(self._works[number]))

    def _result(self, work: bytes) -> object:
        try:
            return self._function(pickle.loads(work))  # noqa: S301 - what our driver pickled
        except BinlaneError as error:
            context = TaskContext.get()
            attempt = context.attemptNumber() if context else 0
            if isinstance(error, _PASSING) and attempt + 1 < self._attempts:
                raise
            return error

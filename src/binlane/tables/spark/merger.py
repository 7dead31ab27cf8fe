"""Spark's own MERGE for current tables: one statement and one commit a table.

It joins a table of any size by Spark's means, where tasks of ours rewrite file by file; its commit
says, in Delta's own record of transactions, up to where the table is complete. Rows are read and
written by Spark's executors. The session needs Delta's classes, which `merge_settings` names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import pyspark
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it tells no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from binlane.errors import ConfigError
from binlane.tables.columnar.table_schema import SEQUENCE_COLUMN
from binlane.tables.landing.net_changes import GONE
from binlane.tables.landing.range_work import FormatName
from binlane.tables.landing.tables.store_settings import MergeOrder
from binlane.tables.spark.failures import readable

MERGE_SETTING: Final = "spark.binlane.merge"
"""`spark` lets Spark merge into current tables; else tasks do."""
_BY_SPARK: Final = "spark"
_BY_TASKS: Final = "tasks"
_PACKAGES: Final = "spark.jars.packages"
_APP_ID: Final = "spark.databricks.delta.write.txnAppId"
_VERSION: Final = "spark.databricks.delta.write.txnVersion"
_NOTE: Final = "spark.databricks.delta.commitInfo.userMetadata"
_DELTA_VERSION: Final = "4.4.0"
_EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_OWN: Final = ("_gtid", SEQUENCE_COLUMN)


def merge_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return a session's settings, with those that Spark's MERGE needs if it is chosen.

    Raises:
        ConfigError: If what is asked for is unknown.
    """
    chosen = settings.get(MERGE_SETTING, _BY_TASKS)
    if chosen == _BY_TASKS:
        return dict(settings)
    if chosen != _BY_SPARK:
        raise ConfigError(
            f"nothing merges by {chosen}", key=MERGE_SETTING, hint="write spark or tasks"
        )
    release = ".".join(pyspark.__version__.split(".")[:2])
    package = f"io.delta:delta-spark_{release}_2.13:{_DELTA_VERSION}"
    given = settings.get(_PACKAGES, "")
    return {
        "spark.sql.extensions": _EXTENSION,
        "spark.sql.catalog.spark_catalog": _CATALOG,
        # By default moments become INT96, of which Parquet keeps no bounds.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        **settings,
        _PACKAGES: given if "delta-spark" in given else ",".join(filter(None, (given, package))),
    }


class SparkMerger:
    """Merges staged runs into Delta tables.

    Args:
        spark: A session with Delta's classes.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    @classmethod
    def of(cls, spark: SparkSession) -> SparkMerger | None:
        """The merger of a session, if it is to merge."""
        chosen = spark.sparkContext.getConf().get(MERGE_SETTING, _BY_TASKS)
        return cls(spark) if chosen == _BY_SPARK else None

    def takes(self, table_format: FormatName, names: Sequence[str], *, has_feed: bool) -> bool:
        """True if it can merge into a table: one of Delta's.

        If the table tells its changes, Delta takes names of columns apart without quoting them.
        """
        is_quoted = not has_feed or not any("`" in name for name in names)
        return table_format is FormatName.DELTA and is_quoted

    def merge(self, order: MergeOrder) -> None:
        """Merge, all or nothing; images that the table has already are not merged again.

        Raises:
            BinlaneError: If Spark fails.
        """
        context = self._spark.sparkContext
        context.setJobDescription(f"binlane: MERGE into {order.uri}")
        try:
            with self._transaction(order):
                self._spark.sql(_statement(order), run=self._last_of_each(order))
        except (PySparkException, Py4JError) as error:
            raise readable(error) from None
        finally:
            context.setJobDescription(None)  # type: ignore[arg-type]  # takes it away

    def _last_of_each(self, order: MergeOrder) -> DataFrame:
        """The last row of each key of all runs, with the table's names."""
        frames = []
        for run in order.runs:
            frame = self._spark.read.parquet(run.path)
            # Names of a table may be known where its rows in the log have numbers only.
            frames.append(frame.toDF(*order.names, *frame.columns[len(order.names) :]))
        found = frames[0]
        for frame in frames[1:]:
            found = found.union(frame)
        if len(frames) == 1:
            return found
        keys = ", ".join(map(_quoted, order.key))
        latest = f"row_number() OVER (PARTITION BY {keys} ORDER BY {SEQUENCE_COLUMN} DESC)"
        return self._spark.sql(
            f"SELECT * EXCEPT (_number) FROM (SELECT *, {latest} AS _number FROM {{runs}}) "  # noqa: S608 - names are quoted
            "WHERE _number = 1",
            runs=found,
        )

    @contextmanager
    def _transaction(self, order: MergeOrder) -> Iterator[None]:
        """Give the commits inside a transaction id, so that Delta skips repeated ones."""
        told = {_APP_ID: order.app_id, _VERSION: str(order.applied), _NOTE: order.note}
        settings = self._spark.conf
        for name, value in told.items():
            settings.set(name, value)
        try:
            yield
        finally:
            for name in told:
                settings.unset(name)


def _statement(order: MergeOrder) -> str:
    columns = [_quoted(name) for name in (*order.names, *_OWN) if name not in order.left_out]
    keys = [f"t.{name} = s.{name}" for name in map(_quoted, order.key)]
    return (
        f"MERGE INTO delta.{_quoted(order.uri)} AS t USING {{run}} AS s "  # noqa: S608 - names are quoted
        f"ON {' AND '.join([*keys, *_bounds(order)])} "
        f"WHEN MATCHED AND s.{GONE} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {_pairs(columns)} "
        f"WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT ({', '.join(columns)}) "
        f"VALUES ({', '.join(f's.{name}' for name in columns)})"
    )


def _pairs(columns: Sequence[str]) -> str:
    return ", ".join(f"t.{name} = s.{name}" for name in columns)


def _bounds(order: MergeOrder) -> list[str]:
    """Between which numbers keys lie: by them files are left out, by a join they are not."""
    found = []
    for name in order.key:
        low = [run.stats.get("minValues", {}).get(name) for run in order.runs]
        high = [run.stats.get("maxValues", {}).get(name) for run in order.runs]
        if all(type(value) is int for value in low + high):
            found.append(f"t.{_quoted(name)} BETWEEN {min(low)} AND {max(high)}")
    return found


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

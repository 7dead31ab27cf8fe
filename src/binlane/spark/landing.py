"""Landing: a log's changes → Delta tables, as one streaming query.

Spark's tasks read and decode the log; the driver commits, table by table, with delta-rs. The
query's checkpoint says up to where the log is read, the tables themselves up to where it is applied
(see `lander`), so that a crash between the two loses and doubles nothing.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from binlane import errors
from binlane.errors import BinlaneError, CodecError, ConfigError
from binlane.land.change_tables import ChangeTables
from binlane.land.current_tables import CurrentTables
from binlane.land.delta_tables import DeltaTables
from binlane.land.journal import FOLDER, Journal
from binlane.land.lander import Lander
from binlane.land.progress import Mode, TableReport
from binlane.ranges.plan import Planner
from binlane.scope.scope import Scope
from binlane.spark.options import Layout, read_scope
from binlane.spark.source import FORMAT_NAME

BATCH_BYTES_DEFAULT: Final = 64 << 20
_OWN_ERROR: Final = re.compile(r"binlane\.errors\.(\w+): (.+)")
_HINT: Final = re.compile(r"^\s*hint: (.+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingReport:
    """What a landing did.

    Attributes:
        tables: By name, such as `shop.orders`: also those that were there before.
        batches: Micro-batches that were not empty.
        seconds: From start to end.
        last_gtid: Of the last change or statement applied; None if there was nothing to do.
        notes: What the reader of the tables must know.
    """

    tables: dict[str, TableReport] = field(default_factory=dict)
    batches: int = 0
    seconds: float = 0.0
    last_gtid: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Row images landed."""
        return sum(table.rows for table in self.tables.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingSettings:
    """How to land.

    Attributes:
        modes: Which kinds of tables.
        tables: Which of the log's tables: `shop.orders, crm`, or the lists of CREATE BINLOG:
            `LOG(shop), IGNORE(shop.secret)`; all if empty.
        checkpoint: URI of the query's checkpoint; by default in the target.
        trigger: How often to look for more, such as `1 second`; None ends with what there is now.
        batch_bytes: Bytes of log of a micro-batch, about.
    """

    modes: frozenset[Mode] = frozenset(Mode)
    tables: str = ""
    checkpoint: str | None = None
    trigger: str | None = None
    batch_bytes: int = BATCH_BYTES_DEFAULT

    def __post_init__(self) -> None:
        """Refuse what cannot be used.

        Raises:
            ConfigError: If there is no mode, or no room in a batch.
        """
        if not self.modes:
            raise ConfigError(
                "no mode is given", key="mode", hint="choose current, changes or both"
            )
        if self.batch_bytes < 1:
            raise ConfigError("a batch has at least one byte", key="batch_bytes")


def land(
    spark: SparkSession,
    source: str | Sequence[str],
    into: str,
    settings: LandingSettings | None = None,
) -> LandingReport:
    """Land a log's changes, or follow it.

    Current tables need full row images. With the primary key in the log
    (`binlog_row_metadata=FULL`) changes are merged by key; without, all rows are counted, which is
    as exact but rewrites the table. A current table holds what the log tells from its beginning on:
    rows that were there before are not in it, nor are cascades that MariaDB does not log.

    Args:
        spark: A session, see `session.build_session`.
        source: Files, a directory, or `DATA#name`.
        into: URI or path of the target: gets `current/<database>/<table>` and `changes/…`.
        settings: Else the defaults.

    Raises:
        CodecError: With file and position, if the log is damaged or holds what cannot be landed.
        ConfigError: If source, target and checkpoint do not fit together.
        StoreError: If the log or the target cannot be used.
    """
    settings = settings or LandingSettings()
    started = time.monotonic()
    into = into.rstrip("/") if "://" in into else str(Path(into).absolute())
    checkpoint = settings.checkpoint or f"{into}/{FOLDER}/checkpoint"
    sources = [source] if isinstance(source, str) else list(source)
    Planner(sources).files()  # whoever is to read it later: what is wrong with it is said here
    modes = ",".join(sorted(mode.value for mode in settings.modes))
    journal = Journal.open(into, checkpoint, {"mode": modes, "tables": settings.tables})
    kept = {mode: DeltaTables(into, mode.value, journal.state.app_id) for mode in settings.modes}
    lander = Lander(
        journal,
        current=CurrentTables(kept[Mode.CURRENT], journal) if Mode.CURRENT in kept else None,
        changes=ChangeTables(kept[Mode.CHANGES]) if Mode.CHANGES in kept else None,
        scope=read_scope(settings.tables) if settings.tables else Scope.everything(),
    )
    options = {
        "paths": json.dumps(sources),
        "layout": Layout.BATCHES.value,
        "maxBytesPerTrigger": str(settings.batch_bytes),
    }
    if settings.tables:
        options["tables"] = settings.tables
    _run(spark, options, lander, checkpoint, settings.trigger)
    progress = lander.finish()
    return LandingReport(
        tables=dict(sorted(progress.tables.items())),
        batches=progress.batches,
        seconds=time.monotonic() - started,
        last_gtid=progress.last_gtid,
        notes=tuple(progress.notes),
    )


def _run(
    spark: SparkSession,
    options: dict[str, str],
    lander: Lander,
    checkpoint: str,
    trigger: str | None,
) -> None:
    failure: list[BaseException] = []

    def apply(frame: DataFrame, _batch_id: int) -> None:
        try:
            lander.apply(frame.toArrow())
        except BaseException as error:
            failure.append(error)
            raise

    try:
        writer = (
            spark.readStream.format(FORMAT_NAME)
            .options(**options)
            .load()
            .writeStream.foreachBatch(apply)
            .option("checkpointLocation", checkpoint)
        )
        timed = (
            writer.trigger(availableNow=True)
            if trigger is None
            else writer.trigger(processingTime=trigger)
        )
        _await(timed.start())
    except PySparkException as error:
        if failure and isinstance(failure[0], BinlaneError):
            raise failure[0] from None
        raise readable(error) from error


def _await(query: StreamingQuery) -> None:
    try:
        query.awaitTermination()
    finally:
        query.stop()


def readable(error: PySparkException) -> Exception:
    """The error of binlane that Spark carries as the text of a traceback; else Spark's own."""
    found = _OWN_ERROR.findall(str(error))
    if not found:
        return error
    name, message = found[-1]
    hints = _HINT.findall(str(error))
    kind = getattr(errors, name)
    # Errors of the codec need nothing beside their text, which already says file and position.
    is_codec = issubclass(kind, CodecError)
    return (kind if is_codec else BinlaneError)(message.strip(), hint=hints[-1] if hints else "")

"""Settings of a landing: all that the command line and `binlane.land` take beside source and target."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from binlane.binlogs.filters.terms import FilterTerms
from binlane.errors import ConfigError
from binlane.tables.landing.range_work import FormatName, Mode

BATCH_BYTES_DEFAULT: Final = 256 << 20
TASK_BYTES_DEFAULT: Final = 32 << 20
KEEP_HOURS_DEFAULT: Final = 168.0

# MariaDB's domain, server and number; MySQL's UUID, tag and number.
_GTID: Final = re.compile(r"\d+-\d+-\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:\w+)?:\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingSettings:
    """Settings of a landing.

    Attributes:
        modes: The kinds of tables that are kept.
        tables: The tables of the log that are landed: `shop.orders, crm`, or the lists of CREATE
            BINLOG: `LOG(shop), IGNORE(shop.secret)`; all if empty.
        format: The format of the target's tables.
        checkpoint: URI of the folder of the journal; by default in the target.
        follow_s: Seconds between two looks for more; None ends with the log that there is now.
        batch_bytes: Bytes of log that a batch has, about.
        task_bytes: Bytes of log that one task takes, about.
        soft_deletes: Whether rows that are deleted stay in current tables, with `_deleted_at`.
        keep_hours: How long files of earlier versions of tables are kept, for their readers.
        catalog: Settings of the Iceberg catalog, as pyiceberg takes them, with `name`; empty for
            one in the target.
        snapshot: URL of the server whose rows are to be taken first, as of a source that is a
            server; empty for none.
        chunk_rows: Rows of a range of a snapshot; by default as many as have about 48 MB.
        skip: GTIDs of event groups that are passed over.
        is_taking_over: Whether to go on in place of a driver that still holds the target.
        keys: Path of the key file of encrypted logs; tasks read it, too. None for none.
        is_audited: Whether each range of the log is counted beside the task that decodes it, and a
            difference between that, the task and the tables ends the landing.
        filter_terms: Options of the filter that narrows `tables`, with renames followed; None for
            all.
        cdf: Whether the commits of current tables tell which rows they change, in Delta's change
            data feed; None goes on as before.
    """

    modes: frozenset[Mode] = frozenset({Mode.CURRENT, Mode.CHANGES})
    tables: str = ""
    format: FormatName = FormatName.DELTA
    checkpoint: str | None = None
    follow_s: float | None = None
    batch_bytes: int = BATCH_BYTES_DEFAULT
    task_bytes: int = TASK_BYTES_DEFAULT
    soft_deletes: bool = False
    keep_hours: float = KEEP_HOURS_DEFAULT
    catalog: Mapping[str, str] = field(default_factory=dict)
    snapshot: str = ""
    chunk_rows: int | None = None
    skip: frozenset[str] = frozenset()
    is_taking_over: bool = False
    keys: str | None = None
    is_audited: bool = True
    filter_terms: FilterTerms | None = None
    cdf: bool | None = None

    @property
    def terms(self) -> dict[str, str]:
        """The settings, by name, that a landing that goes on must have in common with the one before."""
        return {
            "mode": ",".join(sorted(mode.value for mode in self.modes)),
            "tables": self.tables,
            "format": self.format.value,
            "soft-deletes": "yes" if self.soft_deletes else "",
            "filter": "" if self.filter_terms is None else self.filter_terms.text,
        }

    def __post_init__(self) -> None:
        """Refuse what cannot be used.

        Raises:
            ConfigError: If there is no mode, or no room in a batch, or if it is not built.
        """
        if not self.modes:
            raise ConfigError(
                "no mode is given", key="mode", hint="choose current, changes, history or several"
            )
        if self.batch_bytes < 1 or self.task_bytes < 1:
            raise ConfigError("a batch has at least one byte", key="batch_bytes")
        if self.keep_hours < 1:
            raise ConfigError(
                "files must be kept longer than a batch takes",
                key="keep",
                hint="give one hour or more",
            )
        if self.cdf and (self.format is not FormatName.DELTA or Mode.CURRENT not in self.modes):
            raise ConfigError(
                "a change data feed is of current tables in Delta",
                key="cdf",
                hint="use --format delta and --mode current, or read the change tables",
            )
        if self.filter_terms is not None and self.filter_terms.has_kinds:
            raise ConfigError(
                "tables are landed with all changes of their rows",
                key="do-event",
                hint="choose tables, not kinds of statements",
            )
        for gtid in self.skip:
            if _GTID.fullmatch(gtid) is None:
                raise ConfigError(
                    f"{gtid!r} is no GTID", key="skip", hint="write 0-1-5, or UUID:5 of a MySQL"
                )

"""How to land: everything that the command line and `binlane.land` take beside source and target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from binlane.errors import ConfigError
from binlane.land.work import Format, Mode

BATCH_BYTES_DEFAULT: Final = 256 << 20
TASK_BYTES_DEFAULT: Final = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LandingSettings:
    """How to land.

    Attributes:
        modes: Which kinds of tables.
        tables: Which of the log's tables: `shop.orders, crm`, or the lists of CREATE BINLOG:
            `LOG(shop), IGNORE(shop.secret)`; all if empty.
        format: Of the tables.
        checkpoint: URI of the folder of the journal; by default in the target.
        follow_s: How often to look for more, in seconds; None ends with what there is now.
        batch_bytes: Bytes of log of a batch, about.
        task_bytes: Bytes of log that one task takes, about.
        snapshot: URL of the server whose rows are to be taken first; empty for none.
        password: Of the account there.
        chunk_rows: Rows of a range of a snapshot; by default as many as have about 48 MB.
        skip: GTID of one event group that is passed over; empty for none.
        is_taking_over: Whether to go on in place of a driver that still holds the target.
        server_options: What a source that is a server needs: see the planner.
    """

    modes: frozenset[Mode] = frozenset({Mode.CURRENT, Mode.CHANGES})
    tables: str = ""
    format: Format = Format.DELTA
    checkpoint: str | None = None
    follow_s: float | None = None
    batch_bytes: int = BATCH_BYTES_DEFAULT
    task_bytes: int = TASK_BYTES_DEFAULT
    snapshot: str = ""
    password: str = field(default="", repr=False)
    chunk_rows: int | None = None
    skip: str = ""
    is_taking_over: bool = False
    server_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def terms(self) -> dict[str, str]:
        """What a landing that goes on must have in common with the one before."""
        return {
            "mode": ",".join(sorted(mode.value for mode in self.modes)),
            "tables": self.tables,
            "format": self.format.value,
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
        if self.format is not Format.DELTA:
            raise _not_built("format", self.format.value, "delta")
        if Mode.HISTORY in self.modes:
            raise _not_built("mode", "history", "current,changes")
        if self.skip:
            raise _not_built("skip", "passing over a group", "--tables without those it concerns")


def _not_built(key: str, what: str, instead: str) -> ConfigError:
    return ConfigError(f"{what} is not built yet", key=key, hint=f"use {instead}")

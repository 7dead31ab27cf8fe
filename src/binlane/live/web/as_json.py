"""The status page's facts as JSON: names with units, times in ISO 8601, UTC; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, Final

from binlane.live.web.history import STEP_S, WINDOW_S, Rates, Series
from binlane.live.web.status import BinlogStatus, Status
from binlane.live.web.words import iso_text

_AT: Final = "at_s"
_DECIMALS: Final = 3


def binlogs_json(status: Status) -> list[dict[str, Any]]:
    """All binlogs, by name."""
    return [_binlog(binlog) for binlog in status.binlogs]


def status_json(status: Status) -> dict[str, Any]:
    """Everything but the binlogs."""
    return {
        "at": iso_text(status.at_s),
        "ready": not status.problems,
        "problems": status.problems,
        "notes": status.notes,
        "source": _plain(status.source),
        "port": _plain(status.port),
        "process": _plain(status.process),
        "archive_uri": status.archive_uri or None,
    }


def _binlog(binlog: BinlogStatus) -> dict[str, Any]:
    extra = {"problem": binlog.problem, "dumps": len(binlog.readers)}
    return {**_plain(binlog), **extra}


def _rates(rates: Rates) -> dict[str, Any]:
    until = rates.until_at_s
    return {
        "since": _time(rates.since_at_s),
        "from": None if until is None else iso_text(until - WINDOW_S),
        "until": _time(until),
        "step_s": STEP_S,
        "event_groups_per_s": _series(rates.event_groups),
        "bytes_per_s": _series(rates.size_bytes),
    }


def _series(series: Series) -> list[float | None]:
    return [None if value is None else round(value, _DECIMALS) for value in series.values]


def _time(at_s: float | None) -> str | None:
    return None if at_s is None else iso_text(at_s)


def _plain(value: Any) -> Any:
    """A value as JSON has it; a field `…_at_s` becomes `…_at`, a time."""
    if isinstance(value, Rates):
        return _rates(value)
    if is_dataclass(value):
        return dict(_field(each.name, getattr(value, each.name)) for each in fields(value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return round(value, _DECIMALS)
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _field(name: str, value: Any) -> tuple[str, Any]:
    is_time = name == _AT or name.endswith(f"_{_AT}")
    return (name.removesuffix("_s"), _time(value)) if is_time else (name, _plain(value))

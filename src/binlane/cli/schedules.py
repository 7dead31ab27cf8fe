"""Files of definitions, as command lines name them, and where in a log each statement holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from binlane.binlogs.route.schedule import Schedule
    from binlane.positions import AnyGtid
    from binlane.statements.scope.definition import Definition

_AT_GTID: Final = re.compile(rb"^[ \t]*--[ \t]+@at-gtid[ \t]+(\S+)[^\n]*$", re.MULTILINE)
_WHOLE: Final = b"CREATE BINLOG 'binlog';"


def read_schedule(path: Path | None, changes: Sequence[tuple[str, str]]) -> Schedule:
    """Return the definitions of DEFS.sql, or one binlog of everything, and the later changes.

    Args:
        path: The file; None for the one binlog.
        changes: GTIDs and files of further statements, each behind its event group.

    Raises:
        ConfigError: If a file holds anything else, or defines nothing.
        StoreError: If one cannot be read.
    """
    from binlane.binlogs.route.schedule import Schedule, ScheduledChange  # noqa: PLC0415
    from binlane.errors import ConfigError  # noqa: PLC0415
    from binlane.statements.check.definitions import read_definitions  # noqa: PLC0415  # after --help

    parts = [("", _WHOLE)] if path is None else list(_parts(path))
    definitions = read_definitions(parts[0][1], name=str(path), are_for_files=True)
    if not definitions:
        raise ConfigError(
            f"{path} defines no binlog",
            key="--binlogs",
            hint="CREATE BINLOG 'orders' LOG(shop.orders);",
        )
    found: list[ScheduledChange] = []
    current: tuple[Definition, ...] = definitions
    later = [(gtid, text, str(path)) for gtid, text in parts[1:]]
    later += [(gtid, Path(file).read_bytes(), file) for gtid, file in _readable(changes)]
    for gtid, text, name in later:
        current = read_definitions(text, name=name, before=current, are_for_files=True)
        found.append(ScheduledChange(_gtid(gtid), current))
    return Schedule(definitions, tuple(found))


def _parts(path: Path) -> Iterator[tuple[str, bytes]]:
    """Give the text before the first `-- @at-gtid GTID` line, and behind each; lines keep their numbers."""
    from binlane.binlogs.store.chunks import open_chunks  # noqa: PLC0415  # after --help

    text = b"".join(open_chunks(path))
    start, gtid = 0, ""
    for match in _AT_GTID.finditer(text):
        yield gtid, b"\n" * text.count(b"\n", 0, start) + text[start : match.start()]
        start, gtid = match.end(), match[1].decode("ascii", "replace")
    yield gtid, b"\n" * text.count(b"\n", 0, start) + text[start:]


def _readable(changes: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    from binlane.errors import StoreError  # noqa: PLC0415

    for gtid, file in changes:
        if not Path(file).is_file():
            raise StoreError(
                "cannot be read: no such file", path=file, hint="--at-gtid takes GTID FILE.sql"
            )
        yield gtid, file


def _gtid(text: str) -> AnyGtid:
    from binlane.errors import ConfigError  # noqa: PLC0415
    from binlane.positions import Gtid, MysqlGtid  # noqa: PLC0415

    try:
        return MysqlGtid.parse(text) if ":" in text else Gtid.parse(text)
    except ValueError as error:
        raise ConfigError(f"{error}", key="--at-gtid", hint="such as 0-1-500") from None

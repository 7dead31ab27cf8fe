"""A statement's use of the time: of the time zone, and of the microseconds of its start.

Measured on MariaDB 10.11, 11.8 and MySQL 9.7, by their logs in STATEMENT format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.server import Server
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tree.expressions import Name, Star, walk

_NOW: Final = frozenset(
    ("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURTIME", "CURRENT_TIME")
)
_DATES: Final = frozenset(("CURDATE", "CURRENT_DATE", "UTC_DATE", "UNIX_TIMESTAMP"))
_UTC_NOW: Final = frozenset(("UTC_TIMESTAMP", "UTC_TIME"))
_ZONED: Final = frozenset(
    (
        *("CURDATE", "CURRENT_DATE", "SYSDATE", "FROM_UNIXTIME", "TIMESTAMP"),
        *("CAST", "CONVERT", "CONVERT_TZ"),
    )
)
_ZONED_ON_MYSQL: Final = frozenset(
    (
        *("DATE_FORMAT", "TIME_FORMAT", "ADDTIME", "SUBTIME", "DATE_ADD", "DATE_SUB", "ADDDATE"),
        *("SUBDATE", "TIMESTAMPADD", "TIMESTAMPDIFF", "TIMEDIFF", "DATEDIFF", "STR_TO_DATE"),
        *("TO_SECONDS", "TO_DAYS", "DATE", "TIME", "YEAR", "MONTH", "DAY", "DAYOFMONTH", "HOUR"),
        *("MINUTE", "SECOND", "MICROSECOND", "WEEK", "WEEKDAY", "WEEKOFYEAR", "YEARWEEK"),
        *("DAYOFWEEK", "DAYOFYEAR", "DAYNAME", "MONTHNAME", "LAST_DAY", "QUARTER", "EXTRACT"),
        *("MAKETIME", "GREATEST", "LEAST"),
    )
)
"""Those that may read a text as a time, in which an offset can stand."""
_INSERTING: Final = frozenset((StatementKind.INSERT, StatementKind.REPLACE))
ROW_START: Final = "ROW START"


class TimeUse(NamedTuple):
    """Use of the time by one function or column.

    Attributes:
        zone: True if the time zone may be asked for.
        has_microseconds: True if the server logs the microseconds of the statement's start.
        needs_microseconds: True if stored values depend on the microseconds.
        needs_server_time: True if the microseconds must be the source's own.
        is_time: True if a value is the time of the statement.
    """

    zone: bool = False
    has_microseconds: bool = False
    needs_microseconds: bool = False
    needs_server_time: bool = False
    is_time: bool = False


_NO_TIME: Final = TimeUse()
_VERSIONED: Final = TimeUse(True, True, True, needs_server_time=True)


def times_of_functions(texts: Iterable[StatementFacts], server: Server) -> Iterator[TimeUse]:
    """Give the time uses of functions.

    Args:
        texts: Parsed facts of the statement, and of all that stands behind it.
        server: Server whose log holds the statement.
    """
    for text in texts:
        for use in text.functions:
            name = use.upper_name
            if name in _NOW or name in _UTC_NOW:
                called = text.text[use.offset : use.offset + use.length]
                given = called.partition("(")[2].strip(" )")
                has_digits = bool(use.arguments) and given not in ("", "0")
                has = server.is_mariadb or has_digits
                yield TimeUse(name in _NOW, has, has_digits, is_time=True)
            elif name in _ZONED or (name == "UNIX_TIMESTAMP" and use.arguments):
                yield TimeUse(zone=True, is_time=name in _DATES)
            elif name in _DATES:
                yield TimeUse(is_time=True)
            elif not server.is_mariadb and name in _ZONED_ON_MYSQL:
                yield TimeUse(zone=True)


def times_of_columns(
    facts: StatementFacts,
    views: Iterable[StatementFacts],
    resolved: ResolvedStatement,
    server: Server,
) -> Iterator[TimeUse]:
    """Give the time uses of columns with times, and of defaults that are the current time.

    Args:
        facts: Parsed facts of the statement's text.
        views: Parsed facts of the views that the statement uses.
        resolved: Tables that the statement opens.
        server: Server whose log holds the statement.
    """
    names, has_all = _mentioned(facts, views)
    for access in resolved.accesses:
        if access.changes and access.table.definition.has_history:
            yield _VERSIONED
        is_own = not access.is_prelocked
        for column in access.table.definition.columns:
            is_named = has_all or not is_own or column.name.lower() in names
            if is_named and _has_zone(column, server):
                yield TimeUse(zone=True)
            if access.changes:
                found = _of_default(column, access, facts, server, is_named=is_named)
                if found is not _NO_TIME:
                    yield found


def _mentioned(facts: StatementFacts, views: Iterable[StatementFacts]) -> tuple[set[str], bool]:
    """The names of columns in all texts, in small letters, and True if all columns are meant."""
    names = {name.lower() for name in facts.columns or ()}
    has_all = facts.effects.kind in _INSERTING and facts.columns is None
    has_all |= facts.effects.kind in (
        StatementKind.LOAD_DATA,
        StatementKind.CREATE_TABLE_SELECT,
    )
    for text in (facts, *views):
        for node in walk(text.tree):
            if isinstance(node, Name):
                names.add(node.parts[-1].lower())
            has_all |= isinstance(node, Star)
    return names, has_all


def _has_zone(column: TableColumn, server: Server) -> bool:
    if column.type_name == "TIMESTAMP":
        return True
    return column.type_name == "DATETIME" and not server.is_mariadb


def _of_default(
    column: TableColumn,
    access: TableAccess,
    facts: StatementFacts,
    server: Server,
    *,
    is_named: bool,
) -> TimeUse:
    """Give the time use of a column whose value is the current time unless the statement says one."""
    is_insert = facts.effects.kind not in (StatementKind.UPDATE, StatementKind.DELETE)
    is_own = not access.is_prelocked
    found = _NO_TIME
    if column.default_form == "now" and (is_insert or not is_own):
        has_digits = _digits(column.default or "") > 0
        has = has_digits or (server.is_mariadb and server.version >= (11, 0, 0))
        if not (is_named and facts.columns is not None and not facts.defaults):
            found = TimeUse(False, has, has_digits, is_time=True)
    is_update = not is_insert or facts.is_on_duplicate or not is_own
    if column.on_update is not None and is_update:
        has_digits = _digits(column.on_update) > 0
        found = TimeUse(
            found.zone,
            found.has_microseconds or has_digits,
            found.needs_microseconds or has_digits,
            is_time=True,
        )
    if column.generated == ROW_START and column.type_name == "TIMESTAMP":
        return _VERSIONED
    return found


def _digits(text: str) -> int:
    """The digits of CURRENT_TIMESTAMP as a definition has it."""
    inner = text.partition("(")[2].strip(" )")
    return int(inner) if inner.isdigit() else 0

"""Tables that come into a scope empty: what made them stands in the binlog where they come in.

Rows of a table outside of a scope are not at hand. But one that was created a moment ago and has
had none is known whole by its CREATE TABLE, which is remembered until rows come or the table
changes. Whatever may have filled it counts.

Partitions move alike: what leaves the scope is dropped there; what comes in empty is made anew.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from binlane.binlogs.routing.judging import RoutedStatement, judge_statement
from binlane.binlogs.routing.query_events import confined, with_text
from binlane.binlogs.routing.routing_memory import CreatedTable, Memory
from binlane.binlogs.routing.row_selection import table_name
from binlane.binlogs.routing.statement_verdicts import IncidentVerdict, Keep, Rewrite, Verdict
from binlane.binlogs.routing.table_births import ComingTable, TableArrival, known_birth
from binlane.log.codec.client_text import text_of_name
from binlane.log.codec.format import Format
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.status_vars import decode_status_vars, encode_status_vars
from binlane.log.codec.types import Flavor
from binlane.log.grouping.event_group import EventGroup
from binlane.log.grouping.inner import expanded_all
from binlane.names import TableName, quote
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.facts import StatementEffects, StatementFacts
from binlane.statements.sql.logged_statements import LoggedStatement, logged_statement
from binlane.statements.sql.statement_kinds import OPEN_ENDED_KINDS, StatementKind
from binlane.statements.sql.table_changes import created
from binlane.statements.sql.tree.definitions import AlterAction, AlterTable, CreateTable

CREATED_MAX: Final = 64
"""Tables that are remembered; of more that are made and stay empty the oldest are forgotten."""
TEXT_MAX: Final = 16 << 10
"""Bytes of a CREATE TABLE that is remembered."""

# Status variables of a context that belong to the event and its group.
_OF_THE_EVENT: Final = frozenset(
    {
        *("UPDATED_DB_NAMES", "MICROSECONDS", "COMMIT_TS", "COMMIT_TS2", "DDL_LOGGED_WITH_XID"),
        *("HRNOW", "XID", "GTID_FLAGS3"),
    }
)
_UNTOLD: Final = OPEN_ENDED_KINDS | {StatementKind.UNKNOWN}
_HARMLESS: Final = frozenset({StatementKind.MAINTENANCE, StatementKind.FLUSH, StatementKind.LOCK})


def after_statement(
    memory: Memory, body: QueryEvent, effects: StatementEffects, scope: Scope
) -> Memory:
    """Give the memory, with its tables outside of a scope, behind a statement."""
    kind, tables = effects.kind, memory.created
    if effects.stopped_at is not None or kind in _UNTOLD:
        return memory.with_created(())
    if effects.is_temporary or kind in _HARMLESS:
        return memory
    if effects.dropped_databases or kind is StatementKind.ALTER_DATABASE:
        return memory.with_created(
            one
            for one in tables
            if not any(scope.is_same(one.name.database, name) for name in effects.databases)
        )
    written = set(map(scope.key, effects.writes))
    if kind is StatementKind.TRUNCATE_TABLE:
        return memory.with_created(
            replace(one, is_empty=one.is_empty or one.name in written) for one in tables
        )
    if effects.renames and kind is StatementKind.RENAME_TABLE:
        return _renamed(memory, effects, scope)
    others = [one for one in tables if one.name not in written]
    if kind is StatementKind.CREATE_TABLE and not effects.if_exists:
        name = scope.key(effects.writes[0])
        is_small = len(body.query) + len(body.status_vars) <= TEXT_MAX
        if not scope.includes(name) and is_small:
            if len(others) >= CREATED_MAX:
                others = [one for one in others if one.is_empty][1 - CREATED_MAX :]
            others.append(
                CreatedTable(
                    name=name,
                    query=body.query,
                    database=body.database,
                    status_vars=body.status_vars,
                    is_empty=True,
                )
            )
    return memory.with_created(others)


def _renamed(memory: Memory, effects: StatementEffects, scope: Scope) -> Memory:
    names = {scope.key(old): scope.key(new) for old, new in effects.net_renames}
    moved = [
        replace(one, name=names.get(one.name, one.name))
        for one in memory.created
        if one.name in names or one.name not in names.values()
    ]
    return memory.with_created(one for one in moved if not scope.includes(one.name))


def after_rows(memory: Memory, group: EventGroup, scope: Scope, format_: Format) -> Memory:
    """Give the memory behind the rows of a group; a table outside that is mapped counts as filled.

    Of the children in `vacant` only rows count, which were seen statement by statement: MariaDB
    maps them with each row of their parents.
    """
    if not memory.created:
        return memory
    mapped = {
        scope.key(table_name(event.body))
        for event in expanded_all(group.events, file=group.file, format_=format_)
        if isinstance(event.body, TableMapEvent)
    }
    return memory.with_rows(mapped - memory.vacant)


def came_in(
    body: QueryEvent, effects: StatementEffects, scope: Scope, memory: Memory, flavor: Flavor
) -> tuple[QueryEvent, RoutedStatement] | None:
    """The CREATE TABLE of the one table that a RENAME brings into a scope, if it is known.

    Args:
        body: Event of the RENAME statement, which does nothing else.
        effects: Effects of the RENAME on tables.
        scope: Scope of the binlog to route to.
        memory: Routing's memory before the RENAME.
        flavor: Flavor of the source; MariaDB alone can replace a table by one statement.

    Returns:
        The event and the judgement on it; None if the table has rows, or the rest of the RENAME
        cannot stand beside it.
    """
    moves = [pair for pair in effects.net_renames if any(map(scope.includes, pair))]
    coming = [pair for pair in moves if not scope.includes(pair[0])]
    leaving = [old for old, new in moves if not scope.includes(new)]
    if len(coming) != 1:
        return None
    ((old, new),) = coming
    replaces = leaving == [new]
    if len(moves) != 1 + len(leaving) or (leaving and not replaces):
        return None
    name = scope.key(old)
    known = next((one for one in memory.created if one.name == name and one.is_empty), None)
    if known is None or (replaces and flavor is not Flavor.MARIADB):
        return None
    made = replace(
        body,
        query=known.query,
        database=known.database,
        status_vars=_context(known.status_vars, body.status_vars),
    )
    if body.is_compressed:
        return None
    text = _text(logged_statement(made), old, new, replaces=replaces)
    if text is None:
        return None
    made = with_text(made, text)
    statement = logged_statement(made)
    found = judge_statement(statement, scope, memory)
    if not isinstance(found.verdict, Keep):
        return None
    return with_text(made, found.text), found


def only_renames(facts: StatementFacts, effects: StatementEffects) -> bool:
    """True if a statement that renames tables does nothing else."""
    if effects.kind is StatementKind.RENAME_TABLE:
        return True
    node = facts.tree
    return isinstance(node, AlterTable) and len(node.actions) == 1


def _context(created_with: bytes, renamed_with: bytes) -> bytes:
    """The context of the CREATE TABLE, with what belongs to the event that it stands in."""
    own = [one for one in decode_status_vars(renamed_with) if one.name in _OF_THE_EVENT]
    kept = [one for one in decode_status_vars(created_with) if one.name not in _OF_THE_EVENT]
    return encode_status_vars([*own, *kept])


def _text(
    statement: LoggedStatement, old: TableName, new: TableName, *, replaces: bool
) -> str | None:
    """The CREATE TABLE with another name; None if it means something else there."""
    facts = statement.facts()
    first = facts.tables[0]
    if facts.effects.reads:
        return None
    if old.database != new.database and not _names_its_charset(statement, old):
        return None
    head = statement.text[: first.offset]
    if replaces and not facts.effects.is_or_replace:
        words = head.lstrip()
        if words[:6].upper() != "CREATE":
            return None
        head = "CREATE OR REPLACE" + words[6:]
    names = [text_of_name(name, statement.charset) for name in (new.database, new.table)]
    if None in names:
        return None
    return f"{head}{'.'.join(map(str, names))}{statement.text[first.offset + first.length :]}"


def _names_its_charset(statement: LoggedStatement, name: TableName) -> bool:
    """True if a table is the same in a database of any character set."""
    facts = statement.facts()
    if not isinstance(facts.tree, CreateTable):
        return False
    table = created(name, facts, engine="INNODB", charset=None)
    return any(option in ("CHARSET", "COLLATE") for option, _ in table.options)


def judge_partition(
    facts: StatementFacts, effects: StatementEffects, scope: Scope, memory: Memory
) -> Verdict | None:
    """Judge an ALTER TABLE that moves partitions between tables inside and outside.

    Returns:
        The verdict; None for any other statement, and where all is inside or outside.
    """
    if effects.kind is not StatementKind.ALTER_TABLE or len(effects.writes) != 2:
        return None
    table, other = effects.writes
    if scope.includes(table) == scope.includes(other):
        return None
    node = facts.tree
    if not isinstance(node, AlterTable) or len(node.actions) != 1:
        return None
    return _moved(node.actions[0], table, other, scope, memory.empty_tables)


def partition_arrival(
    query: QueryEvent, facts: StatementFacts, scope: Scope, memory: Memory
) -> TableArrival | None:
    """The table outside whose rows become those of a partition, if it is known where it was made.

    Args:
        query: Event of a statement that `judge_partition` has an INCIDENT for.
        facts: The facts of that statement.
        scope: Scope of the binlog to route to.
        memory: Routing's memory before the statement.

    Returns:
        The arrival; None if the partition is outside itself, or nothing is remembered of the table.
    """
    table, other = facts.effects.writes
    birth = known_birth(scope.key(other), memory)
    if birth is None or not scope.includes(table):
        return None
    coming = ComingTable(birth=birth, new=table)
    statement = logged_statement(query)
    _, use = facts.tables
    stage = coming.stage
    names = [text_of_name(name, statement.charset) for name in (stage.database, stage.table)]
    if None in names:
        return None
    head, rest = statement.text[: use.offset], statement.text[use.offset + use.length :]
    made = with_text(query, f"{head}{'.'.join(map(str, names))}{rest}")
    inside = scope.with_tables([stage])
    found = judge_statement(logged_statement(made), inside, memory)
    effects = found.facts.effects
    if not isinstance(found.verdict, Keep) or effects.writes != (table, stage):
        return None
    # What is exchanged has the rows that the partition had; what is converted is gone.
    return TableArrival(
        tables=(coming,),
        query=confined(with_text(made, found.text), inside, effects),
        left=(stage,),
        into_partition=True,
    )


def _moved(
    action: AlterAction,
    table: TableName,
    other: TableName,
    scope: Scope,
    empty: Collection[TableName],
) -> Verdict | None:
    is_inside = scope.includes(table)
    verb = action.words[0] if action.kind == "PARTITION" else ""
    if verb == "CONVERT TABLE":
        if not is_inside:
            return Rewrite(f"DROP TABLE IF EXISTS {other}")
        return IncidentVerdict(
            "a table outside of the scope becomes a partition; its rows are not known"
        )
    if verb == "CONVERT":
        if is_inside:
            return Rewrite(f"ALTER TABLE {table} DROP PARTITION {quote(action.name)}")
        return IncidentVerdict(
            "a partition outside of the scope becomes a table; its rows are not known"
        )
    if verb == "EXCHANGE":
        if is_inside and scope.key(other) in empty:
            partition = quote(action.words[1])
            return Rewrite(f"ALTER TABLE {table} TRUNCATE PARTITION {partition}")
        return IncidentVerdict("a partition is exchanged with a table outside of the scope")
    return None

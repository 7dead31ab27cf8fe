"""Objects of a server that a statement needs to be understood: the questions that are asked for it (pure)."""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Final, NamedTuple

from binlane.names import TableName
from binlane.statements.policy.unsafe_defaults import default_facts
from binlane.statements.policy.used_objects import body_use
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.schema import Routine, Table, Trigger, small
from binlane.statements.sql.statement_kinds import VIEW_KINDS, StatementKind
from binlane.statements.sql.tree.account_statements import AccountStatement


class Topic(Enum):
    """The kind of objects that a question is about."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    TABLE = "table"
    """A table, view or sequence, without its triggers."""
    TRIGGERS = "triggers"
    """The triggers of a table, whose names PROGRAMS has."""
    TRIGGER = "trigger"
    """The table that a trigger belongs to: PROGRAMS tells that."""
    FUNCTION = "function"
    PROCEDURE = "procedure"
    EVENT = "event"
    PROGRAMS = "programs"
    """The names of a database's triggers and routines."""
    NAMES = "names"
    """The names of a database's tables and views."""
    KEYS = "keys"
    """The foreign keys between tables, of the whole server."""
    DATABASES = "databases"
    SETTINGS = "settings"
    LOADABLE = "loadable"
    """Loadable functions."""
    ACCOUNTS = "accounts"


_NOTHING: Final = TableName("", "")


class Question(NamedTuple):
    """One question.

    Attributes:
        topic: The kind of objects asked about.
        name: The name of the object; of a database the `database` alone; nothing of the whole
            server.
    """

    topic: Topic
    name: TableName = _NOTHING


BASE: Final = tuple(
    Question(topic)
    for topic in (*(Topic.DATABASES, Topic.SETTINGS, Topic.LOADABLE, Topic.ACCOUNTS),)
)
"""Questions that come before any object: how objects are read, and statements, hangs on them."""


class Need(NamedTuple):
    """A question whose answer a statement needs.

    Attributes:
        question: The question that is to be answered.
        is_deep: Also what belongs to that.
    """

    question: Question
    is_deep: bool = True


_PROGRAM_KINDS: Final = frozenset(
    (StatementKind.CREATE_ROUTINE, StatementKind.ALTER_ROUTINE, StatementKind.DROP_ROUTINE)
)
_EVENT_KINDS: Final = frozenset(
    (StatementKind.CREATE_EVENT, StatementKind.ALTER_EVENT, StatementKind.DROP_EVENT)
)
_TRIGGER_KINDS: Final = frozenset((StatementKind.CREATE_TRIGGER, StatementKind.DROP_TRIGGER))


def questions_of(facts: StatementFacts, database: str) -> tuple[Need, ...]:
    """Return the needs of a statement.

    Args:
        facts: The facts of its text.
        database: The statement's default database; empty without one.
    """
    return tuple(dict.fromkeys(_questions_of(facts, database)))


def _questions_of(facts: StatementFacts, database: str) -> Generator[Need, None, None]:
    effects = facts.effects
    for name in (
        *(use.name for use in facts.tables),
        *(*effects.writes, *effects.reads),
        *(name for pair in effects.renames for name in pair),
    ):
        if name.database:
            yield Need(Question(Topic.TABLE, name))
    is_call = effects.kind is StatementKind.CALL
    for index, use in enumerate((*facts.functions, *facts.body_functions)):
        # Most are built in, which the names of a database's routines tell at once.
        if home := use.database or database:
            name = small(TableName(home, use.name))
            yield Need(Question(Topic.PROCEDURE if is_call and not index else Topic.FUNCTION, name))
    for name in effects.calls:
        yield Need(Question(Topic.FUNCTION, small(name)))
        yield Need(Question(Topic.PROCEDURE, small(name)))
    if effects.objects or effects.databases:
        yield from _objects_of(facts)
    yield from _granted_on(facts, database)
    if effects.kind is StatementKind.COMPOUND:
        for part in body_use(facts.text, database, facts.dialect).facts:
            if part.effects.kind is not StatementKind.COMPOUND:
                yield from _questions_of(part, database)


def _granted_on(facts: StatementFacts, database: str) -> Generator[Need, None, None]:
    """The object of GRANT or REVOKE."""
    tree = facts.tree
    if not isinstance(tree, AccountStatement) or tree.on is None:
        return
    home = database if tree.on.database is None else tree.on.database
    if home not in ("", "*") and tree.on.name != "*":
        is_routine = tree.object_kind in ("FUNCTION", "PROCEDURE")
        topic = Topic[tree.object_kind] if is_routine else Topic.TABLE
        yield Need(Question(topic, TableName(home, tree.on.name)))


def _objects_of(facts: StatementFacts) -> Generator[Need, None, None]:
    """Give the needs of what is created, altered or dropped that is no table."""
    effects = facts.effects
    for name in effects.objects:
        if not name.database:
            continue
        if effects.kind in VIEW_KINDS:
            yield Need(Question(Topic.TABLE, name))
        elif effects.kind in _TRIGGER_KINDS:
            yield Need(Question(Topic.TRIGGER, name))
        elif effects.kind in _EVENT_KINDS:
            yield Need(Question(Topic.EVENT, small(name)))
        elif effects.kind in _PROGRAM_KINDS:
            yield Need(Question(Topic.FUNCTION, small(name)))
            yield Need(Question(Topic.PROCEDURE, small(name)))
    for database in effects.dropped_databases:
        yield Need(Question(Topic.NAMES, TableName(database, "")))


def needs_of_table(table: Table) -> tuple[Need, ...]:
    """Return the needs of a table by itself; its definition does not tell who refers to it."""
    needs = [Need(Question(Topic.TABLE, key.parent), is_deep=False) for key in table.foreign_keys]
    needs += [Need(Question(Topic.TABLE, name)) for name in table.union]
    for column in table.definition.columns:
        if column.has_default_expression and column.default is not None:
            facts = default_facts(column.default, table.name.database, table.dialect)
            needs += questions_of(facts, table.name.database)
    return tuple(dict.fromkeys(needs))


def needs_of_body(program: Routine | Trigger, database: str) -> tuple[Need, ...]:
    """Return the needs of a body; whoever runs one that is not understood is told of it."""
    use = body_use(program.body, database, program.dialect)
    found = (need for facts in use.facts for need in questions_of(facts, database))
    return tuple(dict.fromkeys(found))

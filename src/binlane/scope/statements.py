"""The statements that binlane itself answers, as values, and what they make of definitions.

How they are written is read in `parser`; who keeps definitions and who may ask is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from binlane.errors import DefinitionError
from binlane.names import quote
from binlane.scope.definition import Definition
from binlane.scope.scope import Scope, ScopeList, ScopeObject
from binlane.sql.logging_mode import LoggingMode


class Action(Enum):
    """What a directive does with its list."""

    SET = "SET"
    """The plain form: both lists begin anew."""
    ADD = "ADD"
    DROP = "DROP"


@dataclass(frozen=True, slots=True)
class Directive:
    """One clause on a scope.

    Attributes:
        action: What happens to the list.
        which: The list.
        objects: Databases and tables; None for ALL.
    """

    action: Action
    which: ScopeList
    objects: tuple[ScopeObject, ...] | None


@dataclass(frozen=True, slots=True)
class CreateBinlog:
    """CREATE BINLOG; `logging_mode` None where FORMAT is not given."""

    name: str
    directives: tuple[Directive, ...] = ()
    logging_mode: LoggingMode | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterBinlog:
    """ALTER BINLOG; `logging_mode` None where FORMAT is not given."""

    name: str
    directives: tuple[Directive, ...] = ()
    logging_mode: LoggingMode | None = None


@dataclass(frozen=True, slots=True)
class DropBinlog:
    """DROP BINLOG."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class StartBinlog:
    """START BINLOG; `position` None: from where the binlog stands, else a GTID position as written."""

    name: str
    position: str | None = None


@dataclass(frozen=True, slots=True)
class StopBinlog:
    """STOP BINLOG."""

    name: str


@dataclass(frozen=True, slots=True)
class ShowBinlogs:
    """SHOW BINLOGS."""


@dataclass(frozen=True, slots=True)
class ShowBinlogStatus:
    """SHOW MASTER STATUS, SHOW BINARY LOG STATUS, SHOW BINLOG STATUS; `name` None: the account's."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class ShowBinaryLogs:
    """SHOW BINARY LOGS, SHOW MASTER LOGS."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class ShowBinlogEvents:
    """SHOW BINLOG EVENTS.

    Attributes:
        file: Name of a binlog file; None: the first one.
        position: Where to begin, in bytes; None: at the beginning.
        skipped_rows: How many events to leave out first.
        rows_max: How many to show; None: all.
    """

    file: str | None = None
    position: int | None = None
    skipped_rows: int = 0
    rows_max: int | None = None


@dataclass(frozen=True, slots=True)
class FlushBinaryLogs:
    """FLUSH BINARY LOGS; `name` None: all."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class PurgeBinaryLogs:
    """PURGE BINARY LOGS; either `to_file` or `before`, a time as the user wrote it, is given."""

    name: str | None = None
    to_file: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class ShowReplicas:
    """SHOW SLAVE HOSTS, SHOW REPLICA HOSTS, SHOW REPLICAS."""


BinlogStatement = (
    CreateBinlog
    | AlterBinlog
    | DropBinlog
    | StartBinlog
    | StopBinlog
    | ShowBinlogs
    | ShowBinlogStatus
    | ShowBinaryLogs
    | ShowBinlogEvents
    | FlushBinaryLogs
    | PurgeBinaryLogs
    | ShowReplicas
)


def create(statement: CreateBinlog, log_id: int) -> Definition:
    """The definition that a CREATE BINLOG makes.

    Args:
        statement: The statement; without LOG list it logs everything, without FORMAT in rows.
        log_id: Its new identity, 1 to 2^63-1.

    Raises:
        DefinitionError: If the name is not allowed, or one clause contradicts another.
    """
    _check_clauses(statement.directives)
    # In CREATE nothing exists yet that a clause could reset, so their order means nothing.
    directives = sorted(statement.directives, key=lambda one: one.which is ScopeList.IGNORE)
    return Definition(
        name=statement.name,
        scope=apply_directives(Scope.everything(), directives),
        logging_mode=statement.logging_mode or LoggingMode.ROW,
        log_id=log_id,
    )


def _check_clauses(directives: Sequence[Directive]) -> None:
    """Refuse clauses of one CREATE that cannot both be meant."""
    if {one.which for one in directives if one.objects is None} == set(ScopeList):
        raise DefinitionError(
            "IGNORE ALL contradicts LOG ALL", hint="leave one of the two clauses out"
        )


def _text(name: ScopeObject) -> str:
    return quote(name) if isinstance(name, str) else str(name)


def alter(definition: Definition, statement: AlterBinlog) -> Definition:
    """The definition after an ALTER BINLOG."""
    return replace(
        definition,
        scope=apply_directives(definition.scope, statement.directives),
        logging_mode=statement.logging_mode or definition.logging_mode,
    )


def apply_directives(scope: Scope, directives: Sequence[Directive]) -> Scope:
    """Apply directives from left to right.

    A plain LOG or IGNORE gets rid of what was there, except that a LOG list and an IGNORE list
    next to each other make one configuration, as in CREATE BINLOG. ADD LOG to a scope that logs
    everything only keeps the list for later.

    Raises:
        DefinitionError: If a DROP names what is not in the list.
    """
    fresh: ScopeList | None = None  # the list that the directive before has set anew
    for directive in directives:
        which, objects = directive.which, directive.objects
        if objects is None:
            scope = Scope.everything() if which is ScopeList.LOG else Scope.nothing()
            fresh = which
        elif directive.action is Action.SET:
            is_beside = fresh is not None and fresh is not which
            scope = (scope if is_beside else Scope.everything()).with_list(which, objects)
            if which is ScopeList.LOG:
                scope = replace(scope, log_all=False)
            fresh = None if is_beside else which
        elif directive.action is Action.ADD:
            scope, fresh = scope.added(which, objects), None
        else:
            scope, fresh = _dropped(scope, which, objects), None
    return scope


def _dropped(scope: Scope, which: ScopeList, objects: Sequence[ScopeObject]) -> Scope:
    missing = [name for name in objects if name not in scope.objects(which)]
    if missing:
        raise DefinitionError(
            f"the {which.value} list has no {_text(missing[0])}",
            hint=f"it holds: {scope.render(which) or 'nothing'}",
        )
    return scope.dropped(which, objects)

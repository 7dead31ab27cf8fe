"""The statements that binlane itself answers, as values, and what they make of definitions.

Their syntax is read in `parser`; other modules decide who keeps definitions and who may ask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from binlane.errors import DefinitionError
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.directives import (
    Action,
    Directive,
    altered_scope,
    created_scope,
    quoted,
)
from binlane.statements.sql.servers import LoggingMode, RowImage
from binlane.statements.sql.tree.account_statements import NamedAccount


class DefaultFormat(Enum):
    """Value of FORMAT='default': the format of the server's binlog_format."""

    DEFAULT = "DEFAULT"


@dataclass(frozen=True, slots=True)
class CreateBinlog:
    """CREATE BINLOG; what is None is not given."""

    name: str
    directives: tuple[Directive, ...] = ()
    logging_mode: LoggingMode | DefaultFormat | None = None
    if_not_exists: bool = False
    row_image: RowImage | None = None
    is_compressed: bool | None = None
    follows_cascades: bool | None = None
    with_rows: bool = False


@dataclass(frozen=True, slots=True)
class AlterBinlog:
    """ALTER BINLOG; what is None is not given."""

    name: str
    directives: tuple[Directive, ...] = ()
    logging_mode: LoggingMode | DefaultFormat | None = None
    if_exists: bool = False
    row_image: RowImage | None = None
    is_compressed: bool | None = None
    follows_cascades: bool | None = None
    with_rows: bool = False

    @property
    def scope_text(self) -> str:
        """The statement with its changes of the scope alone, as `parser` reads it."""
        name = self.name.replace("'", "''")
        clauses = (
            f"{'' if each.action is Action.SET else f'{each.action.value} '}{each.which.value}"
            f"({', '.join(map(quoted, each.objects or ()))})"
            for each in self.directives
        )
        return f"ALTER BINLOG '{name}' {', '.join(clauses)}"


@dataclass(frozen=True, slots=True)
class CompactBinlog:
    """ALTER BINLOG … COMPACT: a new beginning with the rows as of a later place."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CancelRows:
    """ALTER BINLOG … WITHOUT ROWS: no rows are read any more for a binlog."""

    name: str


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
        position: Place of the first event to show, in bytes; None: at the beginning.
        skipped_rows: Number of events to leave out first.
        rows_max: Largest number of events to show; None: all.
    """

    file: str | None = None
    position: int | None = None
    skipped_rows: int = 0
    rows_max: int | None = None


@dataclass(frozen=True, slots=True)
class ShowIncidents:
    """SHOW BINLOG INCIDENTS; `name` None: of all binlogs."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class CheckBinlog:
    """CHECK BINLOG; `name` None: all binlogs."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class ShowChecks:
    """SHOW BINLOG CHECKS; `name` None: of all binlogs."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class AcknowledgeIncidents:
    """ACKNOWLEDGE BINLOG INCIDENTS; `last`: the GTID or `file:position` of the last one, None: all."""

    name: str
    last: str | None = None


@dataclass(frozen=True, slots=True)
class FlushBinaryLogs:
    """FLUSH BINARY LOGS; `name` None: all."""

    name: str | None = None


@dataclass(frozen=True, slots=True)
class PurgeBinaryLogs:
    """PURGE BINARY LOGS; either `to_file` or `before`, an expression in SQL, is given."""

    name: str | None = None
    to_file: str | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class GrantRead:
    """GRANT READ ON BINLOG; accounts as they are written."""

    names: tuple[str, ...]
    accounts: tuple[NamedAccount, ...]


@dataclass(frozen=True, slots=True)
class RevokeRead:
    """REVOKE READ ON BINLOG; accounts as they are written."""

    names: tuple[str, ...]
    accounts: tuple[NamedAccount, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ShowReadGrants:
    """SHOW GRANTS ON BINLOG; `name` None: on all; `account` None: of all."""

    name: str | None = None
    account: NamedAccount | None = None


@dataclass(frozen=True, slots=True)
class ShowReplicas:
    """SHOW SLAVE HOSTS, SHOW REPLICA HOSTS, SHOW REPLICAS."""


BinlogStatement = (
    CreateBinlog
    | AlterBinlog
    | CompactBinlog
    | CancelRows
    | DropBinlog
    | StartBinlog
    | StopBinlog
    | ShowBinlogs
    | ShowBinlogStatus
    | ShowBinaryLogs
    | ShowBinlogEvents
    | ShowIncidents
    | AcknowledgeIncidents
    | CheckBinlog
    | ShowChecks
    | FlushBinaryLogs
    | PurgeBinaryLogs
    | ShowReplicas
    | GrantRead
    | RevokeRead
    | ShowReadGrants
)


def create(
    statement: CreateBinlog,
    log_id: int,
    *,
    ignores_case: bool = False,
    default: LoggingMode = LoggingMode.ROW,
) -> Definition:
    """The definition that a CREATE BINLOG makes.

    Args:
        statement: The statement; without LOG list it logs everything, without ROW_IMAGE full images.
        log_id: Identity of the new binlog, 1 to 2^63-1.
        ignores_case: The source does not tell names apart by case: `lower_case_table_names`.
        default: Logging mode of a binlog without FORMAT.

    Raises:
        DefinitionError: If the name is not allowed, or one clause contradicts another.
    """
    definition = Definition(
        name=statement.name,
        scope=created_scope(statement.directives, ignores_case=ignores_case),
        logging_mode=_mode(statement.logging_mode or DefaultFormat.DEFAULT, default),
        log_id=log_id,
        row_image=statement.row_image or RowImage.FULL,
        is_compressed=bool(statement.is_compressed),
        follows_cascades=bool(statement.follows_cascades),
    )
    return _checked(definition)


def alter(
    definition: Definition, statement: AlterBinlog, *, default: LoggingMode = LoggingMode.ROW
) -> Definition:
    """The definition after an ALTER BINLOG.

    Args:
        definition: Definition before the ALTER BINLOG.
        statement: The ALTER BINLOG statement to apply.
        default: Logging mode that FORMAT='default' stands for.

    Raises:
        DefinitionError: If a clause contradicts the definition or another clause.
    """
    compressed, follows = statement.is_compressed, statement.follows_cascades
    altered = replace(
        definition,
        scope=altered_scope(definition.scope, statement.directives),
        logging_mode=_mode(statement.logging_mode or definition.logging_mode, default),
        row_image=statement.row_image or definition.row_image,
        is_compressed=definition.is_compressed if compressed is None else compressed,
        follows_cascades=definition.follows_cascades if follows is None else follows,
    )
    return _checked(altered)


def _checked(definition: Definition) -> Definition:
    """Refuse FOLLOW CASCADES of a binlog that does not have its tables' whole rows."""
    if definition.follows_cascades and (
        definition.logging_mode is not LoggingMode.ROW or definition.row_image is not RowImage.FULL
    ):
        raise DefinitionError(
            f"binlog '{definition.name}' cannot follow cascades: it does not have whole rows",
            hint="FOLLOW CASCADES needs FORMAT='ROW' and ROW_IMAGE='FULL'",
        )
    return definition


def _mode(said: LoggingMode | DefaultFormat, default: LoggingMode) -> LoggingMode:
    return said if isinstance(said, LoggingMode) else default

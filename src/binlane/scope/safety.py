"""Whether every binlog can replicate a statement: the three refusals of seed 000.

Pure. All writes of a statement, and of a transaction, must fall wholly inside or wholly outside of
each scope; what a binlog logs as a statement must read only what that binlog logs too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from binlane.errors import (
    DependencyError,
    PartialTransactionError,
    PartialWriteError,
    UnsafeStatementError,
)
from binlane.names import TableName, quote
from binlane.scope.definition import Definition
from binlane.scope.scope import Scope
from binlane.sql.effects import StatementEffects, StatementKind
from binlane.sql.logging_mode import LoggingFormat

WRITE_HINT = "change the binlogs with ALTER BINLOG, or the statement so that it writes less at once"
DEPENDENCY_HINT = "add what it reads to the LOG list, or log the binlog in row format"
TRANSACTION_HINT = "commit in between, or change the binlogs with ALTER BINLOG"


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a statement's changes a scope logs.

    Attributes:
        written: Everything that changes, quoted, in the order of the text: tables, then databases.
        inside: What of it is logged.
    """

    written: tuple[str, ...]
    inside: frozenset[str]

    @property
    def is_whole(self) -> bool:
        """Whether something changes and all of it is logged."""
        return bool(self.inside) and len(self.inside) == len(self.written)

    @property
    def is_partial(self) -> bool:
        """Whether some of it is logged and some is not."""
        return 0 < len(self.inside) < len(self.written)


def coverage(effects: StatementEffects, scope: Scope) -> Coverage:
    """Compare what a statement changes with a scope.

    DROP DATABASE of a database that the scope splits changes some tables inside and some outside:
    each table of that database that the scope names counts.
    """
    logged = {str(table): scope.includes(table) for table in effects.writes}
    for database in effects.databases:
        logged[quote(database)] = scope.includes_database(database)
        if effects.kind is StatementKind.DROP_DATABASE and scope.splits_database(database):
            tables = sorted(t for t in scope.tables_named() if t.database == database)
            logged.update({str(table): scope.includes(table) for table in tables})
    return Coverage(tuple(logged), frozenset(name for name, is_in in logged.items() if is_in))


def check_statement(
    effects: StatementEffects,
    definitions: Iterable[Definition],
    *,
    formats: Mapping[str, LoggingFormat],
) -> None:
    """Refuse a statement that some binlog could not replicate safely.

    Temporary tables have rules of their own and are not looked at here.

    Args:
        effects: What the statement does.
        definitions: All binlogs.
        formats: Logging format of the statement by binlog name. DDL is logged as a statement
            whatever it says.

    Raises:
        PartialWriteError: If it writes inside and outside of a scope.
        DependencyError: If a binlog logs it as a statement and does not log what it reads.
        UnsafeStatementError: If its text is not understood and some binlog has a scope.
    """
    scoped = [definition for definition in definitions if not definition.scope.is_unscoped]
    if not scoped or effects.is_temporary:
        return
    if effects.stopped_at is not None:
        near = effects.stopped_at.text[:80]
        raise UnsafeStatementError(
            f"what it reads and writes could not be found out near '{near}'",
            hint="write it in another way, or use binlogs that log everything",
        )
    _check_writes(effects, scoped)
    _check_dependencies(effects, scoped, formats)


def _check_writes(effects: StatementEffects, definitions: Sequence[Definition]) -> None:
    """Raise for the first pair that some scope splits, naming all binlogs that split it."""
    coverages = {one.name: coverage(effects, one.scope) for one in definitions}
    split = next((found for found in coverages.values() if found.is_partial), None)
    if split is None:
        return
    first = split.written[0]
    second = next(
        name for name in split.written if (name in split.inside) != (first in split.inside)
    )
    names = [
        name
        for name, found in coverages.items()
        if (first in found.inside) != (second in found.inside)
    ]
    raise PartialWriteError(
        f"binlogs {_braced(names)} do not log both {first} and {second}", hint=WRITE_HINT
    )


def _check_dependencies(
    effects: StatementEffects,
    definitions: Sequence[Definition],
    formats: Mapping[str, LoggingFormat],
) -> None:
    for definition in definitions:
        scope = definition.scope
        is_statement = effects.kind.is_ddl or formats[definition.name] is LoggingFormat.STATEMENT
        if not is_statement or not coverage(effects, scope).is_whole:
            continue
        outside = next((table for table in effects.reads if not scope.includes(table)), None)
        if outside is not None:
            raise DependencyError(
                f"binlog {definition.name} does not log {outside}, "
                "consequently the statement might not replay correctly",
                hint=DEPENDENCY_HINT,
            )


def check_transaction(
    written: Iterable[TableName],
    effects: StatementEffects,
    definitions: Iterable[Definition],
) -> None:
    """Refuse a statement with which a transaction writes inside and outside of a scope.

    Args:
        written: Tables that earlier statements of the transaction have written.
        effects: What the next statement does.
        definitions: All binlogs.

    Raises:
        PartialTransactionError: If a binlog would record only some of the changes.
    """
    changes = {*written, *(() if effects.is_temporary else effects.writes)}
    names = [
        definition.name
        for definition in definitions
        if len({definition.scope.includes(table) for table in changes}) > 1
    ]
    if names:
        raise PartialTransactionError(
            f"binlogs {_braced(names)} only record some of the changes made by the transaction",
            hint=TRANSACTION_HINT,
        )


def _braced(names: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}"

"""Statements on rows, and those of sessions, transactions and prepared statements.

Each has `verb`: its first words in capitals, as many as name the command.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from binlane.sql.tree.expressions import (
    Expression,
    Limit,
    Literal,
    Name,
    ObjectName,
    OrderItem,
    Query,
    Row,
    SelectItem,
    TableReference,
    TableUse,
    UserVariable,
    With,
)
from binlane.sql.tree.node import Node


@dataclass(slots=True, eq=False)
class Assignment(Node):
    """`column = value` of UPDATE, INSERT … SET, LOAD DATA, ON DUPLICATE KEY UPDATE."""

    column: Name
    value: Expression


@dataclass(slots=True, eq=False)
class Insert(Node):
    """INSERT and REPLACE.

    Attributes:
        verb: `INSERT` or `REPLACE`.
        modifiers: LOW_PRIORITY, HIGH_PRIORITY, DELAYED, IGNORE.
        table: Where to; partitions as of others.
        columns: None if none are named, which means all; an empty list is empty.
        columns_at: Where their parenthesis stands; -1 without.
        rows: Of VALUES, or the one of SET (then `columns` come from it, too); None with a query.
            Long runs of rows of plain literals are read when they are asked for.
        is_set: INSERT … SET.
        query: INSERT … SELECT.
        row_alias: `AS new (a, b)` of MySQL: the name and its columns.
        on_duplicate: Of ON DUPLICATE KEY UPDATE; None without.
        on_duplicate_at: Where that clause begins; -1 without.
        returning: None without.
        delayed_at: Where DELAYED stands; -1 without.
    """

    verb: str
    modifiers: frozenset[str]
    table: TableUse
    columns: tuple[str, ...] | None
    columns_at: int = -1
    rows: Sequence[Row] | None = None
    is_set: bool = False
    query: Query | None = None
    row_alias: tuple[str, tuple[str, ...]] | None = None
    on_duplicate: tuple[Assignment, ...] | None = None
    on_duplicate_at: int = -1
    returning: tuple[SelectItem, ...] | None = None
    delayed_at: int = -1


@dataclass(slots=True, eq=False)
class Update(Node):
    """UPDATE of one table or several; `tables` as those of FROM."""

    modifiers: frozenset[str]
    tables: tuple[TableReference, ...]
    assignments: tuple[Assignment, ...]
    with_: With | None = None
    where: Expression | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: Limit | None = None
    returning: tuple[SelectItem, ...] | None = None
    verb: str = "UPDATE"


@dataclass(slots=True, eq=False)
class Delete(Node):
    """DELETE.

    Attributes:
        modifiers: LOW_PRIORITY, QUICK, IGNORE, HISTORY.
        targets: Of the form for several tables, as aliases or names; None for a single one, which
            is then the only one of `tables`.
        tables: As those of FROM.
        before: Of DELETE HISTORY … BEFORE SYSTEM_TIME.
    """

    modifiers: frozenset[str]
    targets: tuple[ObjectName, ...] | None
    tables: tuple[TableReference, ...]
    with_: With | None = None
    where: Expression | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: Limit | None = None
    before: Expression | None = None
    returning: tuple[SelectItem, ...] | None = None
    verb: str = "DELETE"


@dataclass(slots=True, eq=False)
class LoadData(Node):
    """LOAD DATA and LOAD XML.

    Attributes:
        verb: `LOAD DATA` or `LOAD XML`.
        modifiers: LOW_PRIORITY, CONCURRENT, LOCAL, IGNORE, REPLACE.
        file: Its name.
        table: Where to.
        columns: Names of columns and variables; None if none are named.
        assignments: Of SET.
        options_at: Where what stands behind the table's name (and partitions) begins.
        charset: Of CHARACTER SET; empty without.
        fields: Of FIELDS: `TERMINATED`, `ENCLOSED`, `OPTIONALLY ENCLOSED`, `ESCAPED`, each with its
            text, in the order of the statement.
        lines: Of LINES, likewise: `TERMINATED`, `STARTING`.
        skipped: Of IGNORE … LINES.
        row_tag: Of ROWS IDENTIFIED BY.
    """

    verb: str
    modifiers: frozenset[str]
    file: Literal
    table: TableUse
    columns: tuple[Name | UserVariable, ...] | None = None
    assignments: tuple[Assignment, ...] = ()
    options_at: int = -1
    charset: str = ""
    fields: tuple[tuple[str, Literal], ...] = ()
    lines: tuple[tuple[str, Literal], ...] = ()
    skipped: Literal | None = None
    row_tag: Literal | None = None


@dataclass(slots=True, eq=False)
class QueryStatement(Node):
    """A query as a statement; `verb` is SELECT, VALUES, TABLE or WITH, or `(`'s first word."""

    query: Query
    verb: str = "SELECT"


@dataclass(slots=True, eq=False)
class Do(Node):
    """DO."""

    values: tuple[Expression, ...]
    verb: str = "DO"


@dataclass(slots=True, eq=False)
class CallProcedure(Node):
    """CALL; `package` of MariaDB's `CALL package.procedure` stays in the name's database."""

    name: ObjectName
    arguments: tuple[Expression, ...]
    verb: str = "CALL"


@dataclass(slots=True, eq=False)
class HandlerStatement(Node):
    """HANDLER … OPEN, READ, CLOSE."""

    verb: str
    name: ObjectName
    alias: str | None = None
    values: tuple[Expression, ...] = ()
    where: Expression | None = None
    limit: Limit | None = None


# SET ------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class SetItem(Node):
    """One assignment of SET.

    Attributes:
        name: In lower case: a system variable, a user variable (with its `@`), a local variable,
            or `names`, `character set`, `password`, `role`, `transaction isolation level`,
            `transaction access mode` for the special forms.
        scope: `session`, `global`, `persist`, `persist_only` or empty.
        value: None for DEFAULT and for the words of the special forms.
        words: Of the special forms: the level, the character set and collation, in capitals.
        is_system: Written with `@@` or a scope: no local variable.
        target: `NEW.a` in a trigger, or a variable's field, as written.
    """

    name: str
    scope: str = ""
    value: Expression | None = None
    words: str = ""
    is_system: bool = False
    target: Name | None = None


@dataclass(slots=True, eq=False)
class Set(Node):
    """SET."""

    items: tuple[SetItem, ...]
    verb: str = "SET"


@dataclass(slots=True, eq=False)
class SetStatement(Node):
    """MariaDB's SET STATEMENT … FOR: the settings, and the statement that they hold for."""

    items: tuple[SetItem, ...]
    statement: Statement
    verb: str = "SET STATEMENT"


# Transactions and prepared statements ---------------------------------------------------------


@dataclass(slots=True, eq=False)
class Transaction(Node):
    """BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT, ROLLBACK TO, RELEASE SAVEPOINT, XA.

    Attributes:
        verb: As told.
        name: Of a savepoint; as written.
        xid: Of XA: its parts (global id, branch id, format) as they stand in the text.
        options: `AND CHAIN`, `AND NO CHAIN`, `RELEASE`, `NO RELEASE`, `WITH CONSISTENT SNAPSHOT`,
            `READ ONLY`, `READ WRITE`, `ONE PHASE`, `JOIN`, `RESUME`, `SUSPEND` …
    """

    verb: str
    name: str = ""
    xid: tuple[Literal, ...] = ()
    options: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Prepare(Node):
    """PREPARE … FROM, EXECUTE …, EXECUTE IMMEDIATE …, DEALLOCATE PREPARE.

    Attributes:
        verb: `PREPARE`, `EXECUTE`, `EXECUTE IMMEDIATE` or `DEALLOCATE`.
        name: Of the prepared statement; empty for EXECUTE IMMEDIATE.
        source: The text to be prepared.
        using: Of USING.
    """

    verb: str
    name: str = ""
    source: Expression | None = None
    using: tuple[Expression, ...] = ()


@dataclass(slots=True, eq=False)
class Lock(Node):
    """LOCK TABLES and the like: tables with the words of their locks; UNLOCK has none."""

    verb: str
    tables: tuple[tuple[TableUse, str], ...] = ()


@dataclass(slots=True, eq=False)
class Administration(Node):
    """What sessions and administrators ask: USE, SHOW, FLUSH, ANALYZE, OPTIMIZE, KILL.

    Attributes:
        verb: `USE`, `SHOW BINLOG EVENTS`, `FLUSH TABLES`, `ANALYZE TABLE`, …
        tables: Those it names, as far as they matter.
        name: What USE names.
        options: NO_WRITE_TO_BINLOG, LOCAL, WITH READ LOCK, FOR EXPORT, ANALYZE …
        statement: Which EXPLAIN or ANALYZE is about.
    """

    verb: str
    tables: tuple[ObjectName, ...] = ()
    name: str = ""
    options: frozenset[str] = frozenset()
    statement: Statement | None = None


@dataclass(slots=True, eq=False)
class Diagnostics(Node):
    """SIGNAL, RESIGNAL, GET DIAGNOSTICS.

    Attributes:
        verb: As told.
        condition: `SQLSTATE 45000`, a condition's name, or empty.
        items: What SET assigns, names in capitals; of GET the targets are in `targets`.
        targets: Variables that GET sets.
    """

    verb: str
    condition: str = ""
    items: tuple[tuple[str, Expression], ...] = ()
    targets: tuple[Name | UserVariable, ...] = ()


@dataclass(slots=True, eq=False)
class BinlogStatement(Node):
    """BINLOG 'base64'."""

    verb: str = "BINLOG"


@dataclass(slots=True, eq=False)
class Empty(Node):
    """Nothing but comments."""

    verb: str = ""


# `Statement` is every node that stands as a statement: these, `definitions` and `programs`.
Statement = Node


def innermost(statement: Statement) -> Statement:
    """The statement that SET STATEMENT … FOR is about; any other is that itself."""
    while isinstance(statement, SetStatement):
        statement = statement.statement
    return statement

"""Statements on rows, of sessions and transactions, prepared statements; and programs.

Each statement has `verb`: its first words in capitals, as many as name the command. Programs are
blocks, conditions, loops, cursors and handlers of bodies; a statement in a body is any node of here
and of `definitions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from binlane.statements.sql.tree.expressions import (
    DataType,
    Expression,
    Limit,
    Literal,
    Name,
    NamedTable,
    Node,
    ObjectName,
    OrderItem,
    Query,
    Row,
    SelectItem,
    TableReference,
    UserVariable,
    With,
)


@dataclass(slots=True, eq=False)
class Assignment(Node):
    """`column = value` of UPDATE, INSERT … SET, LOAD DATA, ON DUPLICATE KEY UPDATE."""

    column: Name
    value: Expression


@dataclass(slots=True, eq=False)
class Insert(Node):
    """INSERT and REPLACE.

    Attributes:
        verb: First word in capitals: `INSERT` or `REPLACE`.
        modifiers: Some of LOW_PRIORITY, HIGH_PRIORITY, DELAYED, IGNORE.
        table: Table to insert into, with its partitions.
        columns: Columns to fill; None if none are named, which means all; an empty list is empty.
        columns_at: Place of the columns' parenthesis; -1 without.
        rows: Rows of VALUES, or the one of SET (then `columns` come from it, too); None with a
            query. Long runs of rows of plain literals are read when they are asked for.
        is_set: True for INSERT … SET.
        query: Query of INSERT … SELECT, else None.
        row_alias: `AS new (a, b)` of MySQL: the name and its columns.
        on_duplicate: Assignments of ON DUPLICATE KEY UPDATE; None without.
        on_duplicate_at: Place where that clause begins; -1 without.
        returning: Items of the RETURNING clause; None without.
        delayed_at: Place of DELAYED; -1 without.
    """

    verb: str
    modifiers: frozenset[str]
    table: NamedTable
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
        modifiers: Some of LOW_PRIORITY, QUICK, IGNORE, HISTORY.
        targets: Tables to delete from in the form for several tables, as aliases or names; None for
            a single one, which is then the only one of `tables`.
        tables: Table references as in FROM of a SELECT.
        before: Time of DELETE HISTORY … BEFORE SYSTEM_TIME.
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
        verb: First words in capitals: `LOAD DATA` or `LOAD XML`.
        modifiers: Some of LOW_PRIORITY, CONCURRENT, LOCAL, IGNORE, REPLACE.
        file: Name of the data file.
        table: Table to load into, with its partitions.
        columns: Names of columns and variables; None if none are named.
        assignments: Assignments of the SET clause.
        charset: Name behind CHARACTER SET; empty without.
        fields: Parts of FIELDS: `TERMINATED`, `ENCLOSED`, `OPTIONALLY ENCLOSED`, `ESCAPED`, each
            with its text, in the order of the statement.
        lines: Parts of LINES, each with its text: `TERMINATED`, `STARTING`.
        skipped: Number of IGNORE … LINES.
        row_tag: Tag of ROWS IDENTIFIED BY.
    """

    verb: str
    file: Literal
    table: NamedTable
    modifiers: frozenset[str] = frozenset()
    columns: tuple[Name | UserVariable, ...] | None = None
    assignments: tuple[Assignment, ...] = ()
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
        name: Name in lower case: a system variable, a user variable (with its `@`), a local
            variable, or `names`, `character set`, `password`, `role`,
            `transaction isolation level`, `transaction access mode` for the special forms.
        scope: `session`, `global`, `persist`, `persist_only` or empty.
        value: None for DEFAULT and for the words of the special forms.
        words: Words of the special forms: the level, the character set and collation, in capitals.
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
class TransactionStatement(Node):
    """BEGIN, START TRANSACTION, COMMIT, ROLLBACK, SAVEPOINT, ROLLBACK TO, RELEASE SAVEPOINT, XA.

    Attributes:
        verb: First words in capitals, as many as name the command.
        name: Name of a savepoint, as written.
        xid: Parts of XA's id (global id, branch id, format) as they stand in the text.
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
        verb: One of `PREPARE`, `EXECUTE`, `EXECUTE IMMEDIATE` and `DEALLOCATE`.
        name: Name of the prepared statement; empty for EXECUTE IMMEDIATE.
        source: Expression of the text to be prepared.
        using: Parameters in the USING clause.
    """

    verb: str
    name: str = ""
    source: Expression | None = None
    using: tuple[Expression, ...] = ()


@dataclass(slots=True, eq=False)
class Lock(Node):
    """LOCK TABLES and the like: tables with the words of their locks; UNLOCK has none."""

    verb: str
    tables: tuple[tuple[NamedTable, str], ...] = ()


@dataclass(slots=True, eq=False)
class Administration(Node):
    """Request of a session or administrator: USE, SHOW, FLUSH, ANALYZE, OPTIMIZE, KILL.

    Attributes:
        verb: `USE`, `SHOW BINLOG EVENTS`, `FLUSH TABLES`, `ANALYZE TABLE`, …
        tables: Tables that the statement names, as far as they matter.
        name: Database that USE switches to.
        names: Plugins and components that are installed or uninstalled.
        options: Words such as NO_WRITE_TO_BINLOG, LOCAL, WITH READ LOCK, FOR EXPORT, ANALYZE.
        statement: Statement that EXPLAIN or ANALYZE is about.
        condition: Condition of WHERE in SHOW, or BEFORE's value in PURGE.
    """

    verb: str
    tables: tuple[ObjectName, ...] = ()
    name: str = ""
    names: tuple[str, ...] = ()
    options: frozenset[str] = frozenset()
    statement: Statement | None = None
    condition: Expression | None = None


@dataclass(slots=True, eq=False)
class Diagnostics(Node):
    """SIGNAL, RESIGNAL, GET DIAGNOSTICS.

    Attributes:
        verb: First words in capitals, as many as name the command.
        condition: `SQLSTATE 45000`, a condition's name, or empty.
        items: Items that SET assigns, names in capitals; the targets of GET are in `targets`.
        targets: Variables that GET DIAGNOSTICS sets.
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


# `Statement` is every node that stands as a statement: these and `definitions`.
Statement = Node


def innermost(statement: Statement) -> Statement:
    """The statement that SET STATEMENT … FOR is about; any other is that itself."""
    while isinstance(statement, SetStatement):
        statement = statement.statement
    return statement


@dataclass(slots=True, eq=False)
class VariableDeclaration(Node):
    """DECLARE of one or more variables.

    Attributes:
        names: Names as written, without quotes.
        type: Type that all of the variables have.
        default: Expression behind DEFAULT; None for the implied NULL.
    """

    names: tuple[str, ...]
    type: DataType
    default: Expression | None = None


@dataclass(slots=True, eq=False)
class ConditionDeclaration(Node):
    """DECLARE … CONDITION FOR; `value` as handlers have it."""

    name: str
    value: str


@dataclass(slots=True, eq=False)
class CursorDeclaration(Node):
    """DECLARE … CURSOR FOR; parameters (MariaDB) by name."""

    name: str
    query: Query
    parameters: tuple[str, ...] = ()


class HandlerAction(Enum):
    """Course of the program behind a handler's statement."""

    CONTINUE = "continue"
    EXIT = "exit"


@dataclass(slots=True, eq=False)
class HandlerDeclaration(Node):
    """DECLARE … HANDLER FOR.

    Attributes:
        conditions: `NOT FOUND`, `SQLEXCEPTION`, `SQLWARNING`, `SQLSTATE 23000`, an error number,
            or the name of a condition as written.
        statement: Statement that the handler runs.
    """

    action: HandlerAction
    conditions: tuple[str, ...]
    statement: Node


Declaration = VariableDeclaration | ConditionDeclaration | CursorDeclaration | HandlerDeclaration


@dataclass(slots=True, eq=False)
class Block(Node):
    """BEGIN … END; `label` is empty without one, as everywhere here."""

    declarations: tuple[Declaration, ...]
    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class Branch(Node):
    """Statements to run if `condition` holds; in a CASE with an operand, if the operand equals it."""

    condition: Expression
    statements: tuple[Node, ...]


@dataclass(slots=True, eq=False)
class If(Node):
    """IF, with its ELSEIFs as branches."""

    branches: tuple[Branch, ...]
    otherwise: tuple[Node, ...] = ()


@dataclass(slots=True, eq=False)
class CaseStatement(Node):
    """CASE; without ELSE (`otherwise` is None) it is an error if no branch is taken."""

    operand: Expression | None
    branches: tuple[Branch, ...]
    otherwise: tuple[Node, ...] | None = None


@dataclass(slots=True, eq=False)
class Loop(Node):
    """LOOP, without an end of its own."""

    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class While(Node):
    """WHILE: the condition is asked before each round."""

    condition: Expression
    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class Repeat(Node):
    """REPEAT: the condition that ends it is asked after each round."""

    statements: tuple[Node, ...]
    condition: Expression
    label: str = ""


@dataclass(slots=True, eq=False)
class ForRange(Node):
    """FOR variable IN [REVERSE] lower..upper (MariaDB)."""

    variable: str
    lower: Expression
    upper: Expression
    is_reverse: bool
    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class ForRows(Node):
    """FOR record IN a cursor, with its arguments, or in a query (MariaDB)."""

    variable: str
    cursor: str
    query: Query | None
    arguments: tuple[Expression, ...]
    statements: tuple[Node, ...]
    label: str = ""


@dataclass(slots=True, eq=False)
class Return(Node):
    """RETURN; a procedure of MariaDB's sql_mode ORACLE returns no value."""

    value: Expression | None = None


@dataclass(slots=True, eq=False)
class Leave(Node):
    """LEAVE a block or loop."""

    label: str


@dataclass(slots=True, eq=False)
class Iterate(Node):
    """ITERATE a loop."""

    label: str


@dataclass(slots=True, eq=False)
class Open(Node):
    """OPEN a cursor."""

    cursor: str
    arguments: tuple[Expression, ...] = ()


@dataclass(slots=True, eq=False)
class Fetch(Node):
    """FETCH a cursor's next row into variables.

    Without a cursor's name it is FETCH GROUP NEXT ROW of an aggregate function (MariaDB).
    """

    cursor: str
    variables: tuple[Name | UserVariable, ...]


@dataclass(slots=True, eq=False)
class Close(Node):
    """CLOSE a cursor."""

    cursor: str


PROGRAMS = (
    Block,
    If,
    CaseStatement,
    Loop,
    While,
    Repeat,
    ForRange,
    ForRows,
    Return,
    Leave,
    Iterate,
    Open,
    Fetch,
    Close,
)
"""Nodes that stand in bodies alone; MariaDB takes the compound ones as statements, too."""

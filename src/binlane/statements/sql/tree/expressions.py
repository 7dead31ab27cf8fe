"""The base class of all nodes, expressions, and the queries and tables that statements name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import Any, Final, TypeVar

_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class Node:
    """A part of a statement.

    Attributes:
        at: Place where the node begins, in characters from 0.
        end: Place behind the node's last character.
    """

    at: int
    end: int


def told(values: Sequence[_T]) -> Sequence[_T]:
    """Items, without long runs of plain literals, which are read when they are asked for."""
    found: Sequence[_T] = getattr(values, "told", values)
    return found


def children(node: Node) -> list[Node]:
    """The nodes that a node is made of, in the order of its fields, but for runs of literals."""
    kind: Any = type(node)  # not hashable to the type checker, as its instances are not
    found: list[Node] = []
    for name in _names(kind):
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif value and isinstance(value, Sequence) and value.__class__ is not str:
            _add(value, found)
    return found


def walk(node: Node) -> Iterator[Node]:
    """A node and all that it is made of, but for runs of literals."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        left += children(node)


def height(node: Node) -> int:
    """Count the nodes that stand within one another at most."""
    found = 0
    left = [(node, 1)]
    while left:
        node, depth = left.pop()
        found = max(found, depth)
        left += [(child, depth + 1) for child in children(node)]
    return found


def _add(values: Sequence[object], found: list[Node]) -> None:
    for value in told(values):
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            _add(value, found)


_PLAIN: Final = frozenset(
    f"{kind}{ending}"
    for kind in ("int", "bool", "str", "tuple[str, ...]", "tuple[str, str]", "frozenset[str]")
    for ending in ("", " | None")
)


@cache
def _names(kind: type) -> tuple[str, ...]:
    """The fields of a kind of nodes that may hold others."""
    return tuple(field.name for field in fields(kind) if field.type not in _PLAIN)


class LiteralKind(Enum):
    """Kind of a literal, by its notation."""

    __hash__ = object.__hash__

    STRING = "string"
    """A string; also several side by side, `N'…'` and `_utf8'…'`."""
    NUMBER = "number"
    HEX = "hexadecimal"
    """`0x…` and `x'…'`."""
    BIT = "bits"
    """`0b…` and `b'…'`."""
    NULL = "null"
    TRUE = "true"
    FALSE = "false"
    DATE = "date"
    """DATE '…', also as `{d '…'}`; TIME and TIMESTAMP likewise."""
    TIME = "time"
    TIMESTAMP = "timestamp"


@dataclass(slots=True, eq=False)
class Literal(Node):
    """A literal; its value is read from the statement's own text (`Statement.text_of`).

    Attributes:
        introducer: The character set of `_utf8mb4'…'`, `n` of `N'…'`; else empty.
    """

    kind: LiteralKind
    introducer: str = ""


@dataclass(slots=True, eq=False)
class ParameterMarker(Node):
    """`?` of a prepared statement."""


@dataclass(slots=True, eq=False)
class Name(Node):
    """A name of one to three parts: a column, local variable or, by its place, something else.

    Attributes:
        parts: `(table, column)` for `t.a`; as written, without quotes.
    """

    parts: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Star(Node):
    """`*` or `t.*` of a select list, or the argument of COUNT(*)."""

    qualifier: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class UserVariable(Node):
    """`@name`, in lower case without quotes."""

    name: str


@dataclass(slots=True, eq=False)
class SystemVariable(Node):
    """`@@name`.

    Attributes:
        name: Name in lower case; a key cache or component before a dot stays.
        scope: `session`, `global`, `persist` or empty; LOCAL is `session`.
    """

    name: str
    scope: str = ""


@dataclass(slots=True, eq=False)
class Assign(Node):
    """`@a := value`."""

    target: UserVariable
    value: Expression


@dataclass(slots=True, eq=False)
class Call(Node):
    """A call of a function; also what is one without parentheses or in a grammar of its own.

    CURRENT_USER, NEXT VALUE FOR s (as NEXTVAL), PREVIOUS VALUE FOR s (as LASTVAL), `s.NEXTVAL` of
    sql_mode ORACLE; EXTRACT, TRIM, POSITION, SUBSTRING … FROM, GROUP_CONCAT, JSON_VALUE …

    Attributes:
        name: Name in the case of the text.
        arguments: Arguments in their order; for an argument with words of its own
            (`TRIM(LEADING a FROM b)`) the expressions.
        database: Database, if the text gives one; for `a.b.c()` the package joins it (`a.b`).
        is_quoted: The name stands in quotes: then no built-in function is meant.
        words: Words inside, in capitals: `DISTINCT`, `LEADING`, the unit of EXTRACT, `SEPARATOR`.
        order_by: ORDER BY of an aggregate.
        separator: Separator of GROUP_CONCAT, None without.
        over: Window of a window function's call, or its name; None for other calls.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    database: str | None = None
    is_quoted: bool = False
    words: tuple[str, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    separator: Literal | None = None
    over: WindowDefinition | str | None = None

    @property
    def upper_name(self) -> str:
        """The name in capitals, as the lists of functions have it."""
        return self.name.upper()


@dataclass(slots=True, eq=False)
class WindowDefinition(Node):
    """A window as OVER or WINDOW defines it."""

    base: str = ""
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: tuple[Expression, ...] = ()
    """The expressions of its bounds."""


@dataclass(slots=True, eq=False)
class Operation(Node):
    """An operator and its operands.

    Attributes:
        operator: Name in capitals and as one word for its synonyms: `AND` (`&&`), `OR` (`||`
            without PIPES_AS_CONCAT), `XOR`, `NOT` (`!` too), `=`, `<=>`, `<>` (`!=`), `<`, `<=`,
            `>`, `>=`, `+`, `-`, `*`, `/`, `DIV`, `%` (MOD), `|`, `&`, `^`, `<<`, `>>`, `~`, `NEG`
            and `POS` of one operand, `CONCAT` (`||` with PIPES_AS_CONCAT), `LIKE` (with ESCAPE
            three operands), `REGEXP` (RLIKE), `SOUNDS LIKE`, `BETWEEN` (three), `IN` (the value,
            then the items, or one `Subquery`), `IS NULL`, `IS TRUE`, `IS FALSE`, `IS UNKNOWN`,
            `IS JSON`, `EXISTS`, `COLLATE` (its second operand a Name), `BINARY`, `MEMBER OF`, `->`,
            `->>`, `= ANY`, `> ALL` and the like. NOT LIKE, NOT IN, IS NOT NULL … have `is_negated`.
        operands: AND, OR and chains of `+`, `*` and the like of one operator from the left are
            one operation with all their operands, so that long ones are not deep. Very many
            literals are read when they are asked for.
        is_negated: NOT belongs to the operator.
    """

    operator: str
    operands: Sequence[Expression]
    is_negated: bool = False


@dataclass(slots=True, eq=False)
class Case(Node):
    """CASE; `otherwise` is None without ELSE."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None


@dataclass(slots=True, eq=False)
class Cast(Node):
    """CAST, CONVERT(x, type), CONVERT(x USING charset).

    Attributes:
        value: Expression that the call casts.
        type: Type to cast to; None with USING.
        charset: Character set behind USING, else empty.
        is_array: True for CAST(… AS … ARRAY).
    """

    value: Expression
    type: DataType | None = None
    charset: str = ""
    is_array: bool = False


@dataclass(slots=True, eq=False)
class DataType(Node):
    """A type as columns, variables, CAST and RETURNS name it.

    Attributes:
        name: Name in capitals as one word, `VARCHAR` for `CHARACTER VARYING`, `DOUBLE` for
            `DOUBLE PRECISION`; synonyms stay otherwise as they are written (`INTEGER`, `BOOL`).
        arguments: Texts in the parentheses behind it: `("10", "2")`, those of ENUM and SET as
            string literals' values.
        words: UNSIGNED, ZEROFILL, BINARY, ASCII, UNICODE, COMPRESSED.
        charset: Name behind CHARACTER SET; empty without.
        collation: Name behind COLLATE; empty without.
        fields: Types of the fields of ROW, whose names are `arguments`.
    """

    name: str
    arguments: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    charset: str = ""
    collation: str = ""
    fields: tuple[DataType, ...] = ()


@dataclass(slots=True, eq=False)
class Interval(Node):
    """INTERVAL value unit, as an operand of `+`, `-` or an argument of DATE_ADD."""

    value: Expression
    unit: str


@dataclass(slots=True, eq=False)
class Row(Node):
    """`(a, b)` or ROW(a, b); also a row of VALUES, of any number of items.

    A single expression in parentheses is that expression.
    """

    items: Sequence[Expression]


@dataclass(slots=True, eq=False)
class Subquery(Node):
    """A query in parentheses as a value, of EXISTS, IN, ANY or ALL."""

    query: Query


@dataclass(slots=True, eq=False)
class Default(Node):
    """DEFAULT as a value, or DEFAULT(column); IGNORE of EXECUTE … USING too."""

    column: Name | None = None
    word: str = "DEFAULT"


@dataclass(slots=True, eq=False)
class Match(Node):
    """MATCH (columns) AGAINST (text)."""

    columns: tuple[Name, ...]
    against: Expression


Expression = (
    Literal
    | ParameterMarker
    | Name
    | Star
    | UserVariable
    | SystemVariable
    | Assign
    | Call
    | Operation
    | Case
    | Cast
    | Interval
    | Row
    | Subquery
    | Default
    | Match
)


# Queries, and the tables that statements name --------------------------------------------------


@dataclass(slots=True, eq=False)
class ObjectName(Node):
    """The name of a table, view, routine, trigger, event, … ; `database` as written, or None."""

    database: str | None
    name: str


@dataclass(slots=True, eq=False)
class Limit(Node):
    """LIMIT, OFFSET, FETCH FIRST, LIMIT ROWS EXAMINED.

    Attributes:
        count: Number of rows; None where only ROWS EXAMINED stands.
        offset: Rows to skip; None without OFFSET.
        rows_examined: Number of LIMIT ROWS EXAMINED, MariaDB only.
    """

    count: Expression | None
    offset: Expression | None = None
    rows_examined: Expression | None = None
    has_ties: bool = False


@dataclass(slots=True, eq=False)
class OrderItem(Node):
    """One item of ORDER BY or GROUP BY."""

    value: Expression


@dataclass(slots=True, eq=False)
class SelectItem(Node):
    """An expression of a select list, or of RETURNING; `alias` is None without."""

    value: Expression | Star
    alias: str | None = None


@dataclass(slots=True, eq=False)
class Into(Node):
    """INTO of a SELECT; exactly one of `variables`, `outfile` and `dumpfile` is there."""

    variables: tuple[UserVariable | Name, ...] = ()
    outfile: Literal | None = None
    dumpfile: Literal | None = None


@dataclass(slots=True, eq=False)
class Locking(Node):
    """FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE.

    Attributes:
        is_for_update: True for FOR UPDATE, False for FOR SHARE and LOCK IN SHARE MODE.
        tables: Tables behind OF; empty for all.
        wait: `NOWAIT`, `SKIP LOCKED`, `WAIT` or empty.
        wait_at: Place of the word in `wait`.
    """

    is_for_update: bool
    tables: tuple[ObjectName, ...] = ()
    wait: str = ""
    wait_at: int = -1


@dataclass(slots=True, eq=False)
class CommonTable(Node):
    """One common table expression of WITH."""

    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(slots=True, eq=False)
class With(Node):
    """WITH."""

    is_recursive: bool
    tables: tuple[CommonTable, ...]


@dataclass(slots=True, eq=False)
class Select(Node):
    """SELECT without the clauses behind it, which `Query` has.

    Attributes:
        items: Select list in the order of the text.
        options: Words such as DISTINCT, STRAIGHT_JOIN, SQL_CALC_FOUND_ROWS.
        tables: Tables of FROM, those between commas; empty without FROM (DUAL is none).
        where: Condition of WHERE; this and all other absent clauses are None.
        windows: Names of the WINDOW clause with their windows.
        qualify: Condition of QUALIFY, MySQL only.
        procedure: Arguments of PROCEDURE ANALYSE, else None.
        from_at: Place of FROM; -1 without.
    """

    items: tuple[SelectItem, ...]
    options: frozenset[str] = frozenset()
    tables: tuple[TableReference, ...] = ()
    where: Expression | None = None
    group_by: tuple[OrderItem, ...] = ()
    with_rollup: bool = False
    having: Expression | None = None
    windows: tuple[tuple[str, WindowDefinition], ...] = ()
    qualify: Expression | None = None
    procedure: tuple[Expression, ...] | None = None
    from_at: int = -1


@dataclass(slots=True, eq=False)
class Values(Node):
    """VALUES ROW(…), … or VALUES (…), … as a query."""

    rows: tuple[Row, ...]


@dataclass(slots=True, eq=False)
class TableQuery(Node):
    """TABLE t as a query."""

    table: NamedTable


@dataclass(slots=True, eq=False)
class SetOperation(Node):
    """Queries with UNION, EXCEPT or INTERSECT between them, from the left.

    Attributes:
        operands: Queries in their order, at least two.
        operators: Operators between the operands: `UNION`, `UNION ALL`, `EXCEPT`, `EXCEPT ALL`,
            `INTERSECT` …
    """

    operands: tuple[Query, ...]
    operators: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Query(Node):
    """A query with its WITH before and its clauses behind.

    Parentheses around a query add no level unless clauses stand behind them.
    """

    body: Select | Values | TableQuery | SetOperation | Query
    with_: With | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: Limit | None = None
    locks: tuple[Locking, ...] = ()
    into: Into | None = None


# Tables of FROM, UPDATE and DELETE ------------------------------------------------------------


@dataclass(slots=True, eq=False)
class NamedTable(Node):
    """A table, view, sequence or common table expression by its name.

    Attributes:
        name: Name as the text writes it.
        alias: Alias of the table; None without.
        partitions: Names in PARTITION (…), else empty.
        period: FOR SYSTEM_TIME: its kind (`ALL`, `AS OF`, `BETWEEN`, `FROM`) and expressions.
        portion: FOR PORTION OF: the period's name and its bounds.
    """

    name: ObjectName
    alias: str | None = None
    partitions: tuple[str, ...] = ()
    period: tuple[str, tuple[Expression, ...]] | None = None
    portion: tuple[str, Expression, Expression] | None = None


@dataclass(slots=True, eq=False)
class DerivedTable(Node):
    """A query in parentheses as a table."""

    query: Query
    alias: str | None
    columns: tuple[str, ...] = ()
    is_lateral: bool = False


@dataclass(slots=True, eq=False)
class TableFunction(Node):
    """JSON_TABLE(…): its call has the document and the path as arguments."""

    call: Call
    alias: str | None
    columns: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Join(Node):
    """Two tables; a join in parentheses is that join, one of several with commas nests as CROSS.

    Attributes:
        kind: `INNER`, `LEFT`, `RIGHT`, `FULL`, `CROSS` (a comma in parentheses too),
            `STRAIGHT_JOIN`, with `NATURAL ` before it where it is one.
        left: Table before the word JOIN.
        right: Table behind the word JOIN.
        on: Condition behind ON; None without.
        using: Column names in USING (…), else empty.
    """

    kind: str
    left: TableReference
    right: TableReference
    on: Expression | None = None
    using: tuple[str, ...] = ()


TableReference = NamedTable | DerivedTable | TableFunction | Join

"""Tables and joins that may stand in FROM."""

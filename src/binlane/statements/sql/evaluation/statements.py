"""Values of a statement and places of the variables in it: folds over its tree."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from binlane.log.codec.types import Flavor
from binlane.statements.sql.evaluation.contradictions import (
    NO_COLUMNS,
    KnownColumns,
    contradict,
    null_is_known,
)
from binlane.statements.sql.evaluation.evaluator import evaluate, holds, selected_alone
from binlane.statements.sql.evaluation.functions import is_built_in
from binlane.statements.sql.evaluation.known_names import Environment, StatementText
from binlane.statements.sql.evaluation.values import Unknown, Value, as_number, constant, escaped
from binlane.statements.sql.tree.definitions import CreateTable
from binlane.statements.sql.tree.expressions import (
    Assign,
    Call,
    Default,
    DerivedTable,
    Expression,
    Into,
    Join,
    Limit,
    Literal,
    LiteralKind,
    Match,
    Name,
    NamedTable,
    Node,
    Operation,
    Query,
    Select,
    SetOperation,
    Star,
    Subquery,
    UserVariable,
    Values,
    children,
    walk,
)
from binlane.statements.sql.tree.statements import (
    Assignment,
    Delete,
    Diagnostics,
    Insert,
    LoadData,
    SetItem,
    Update,
)

# Rows that cannot be -------------------------------------------------------------------------


def where_holds(
    statement: Update | Delete,
    text: StatementText,
    environment: Environment,
    columns: KnownColumns = NO_COLUMNS,
) -> bool | None:
    """True if WHERE holds for every row, False if for none; None where rows decide.

    The result is that of the servers before they look at rows: from parts without columns, and from
    the facts in `columns`. NULL beside a column (`a = NULL`) is none of those.
    """
    if statement.where is None:
        return True
    return _of_any_row(statement.where, text, environment, columns)


def joins_nothing(tree: Update | Delete, text: StatementText, environment: Environment) -> bool:
    """True if the ON condition of an inner join is constant and does not hold."""
    joins = [node for table in tree.tables for node in walk(table) if isinstance(node, Join)]
    return any(
        join.on is not None
        and join.kind == "INNER"
        and is_constant(join.on, environment)
        and not holds(join.on, text, environment)
        for join in joins
    )


def _of_any_row(
    node: Expression, text: StatementText, environment: Environment, columns: KnownColumns
) -> bool | None:
    if is_constant(node, environment):
        return holds(node, text, environment)
    if not isinstance(node, Operation):
        return None
    if node.operator not in {"AND", "OR", "NOT"}:
        return null_is_known(node, columns)
    found = [_of_any_row(each, text, environment, columns) for each in node.operands]
    if node.operator == "NOT":
        return False if found[0] else None  # what does not hold may be NULL
    decisive = node.operator == "OR"
    if decisive in found:
        return decisive
    if not decisive and _contradict(node.operands, text, environment, columns):
        return False
    return None if None in found else not decisive


def _contradict(
    conditions: Iterable[Expression],
    text: StatementText,
    environment: Environment,
    columns: KnownColumns,
) -> bool:
    def value_of(node: Expression) -> Value | None:
        return evaluate(node, text, environment) if is_constant(node, environment) else None

    return bool(columns.equated) and contradict(conditions, columns, value_of)


def is_constant(node: Node, environment: Environment) -> bool:
    """True if a server knows a value without rows, and computes it once."""
    if isinstance(node, Name):
        try:
            environment.local(".".join(node.parts))
        except LookupError:
            return False
        return True
    if isinstance(node, Subquery):
        inner = selected_alone(node.query)
        return inner is not None and is_constant(inner, environment)
    if isinstance(node, Call) and (node.database is not None or not is_built_in(node.name)):
        return False
    if isinstance(node, Operation) and node.operator == "COLLATE":
        return is_constant(node.operands[0], environment)
    return all(is_constant(each, environment) for each in children(node))


def is_proven_empty(
    statement: Node,
    text: StatementText,
    environment: Environment,
    columns: KnownColumns = NO_COLUMNS,
) -> bool:
    """True if the server knows that UPDATE or DELETE of one table changes nothing.

    The server knows it with LIMIT 0, and where WHERE cannot hold; then it looks at no row and logs
    nothing, in
    any format. Measured on MariaDB 10.11 and 11.8 and MySQL 9.7 by 90 conditions.
    """
    if not isinstance(statement, Update | Delete) or is_multi_table(statement):
        return False
    limit = statement.limit
    if limit is not None and limit.count is not None:
        count = evaluate(limit.count, text, environment)
        if count == 0:
            return True
    return where_holds(statement, text, environment, columns) is False


def is_multi_table(statement: Update | Delete) -> bool:
    """True if a statement has the form for several tables."""
    if isinstance(statement, Delete) and statement.targets is not None:
        return True
    return len(statement.tables) > 1 or not isinstance(statement.tables[0], NamedTable)


# Values of columns ---------------------------------------------------------------------------


def expressions_at(source: Insert | Query, position: int) -> Iterator[Expression | None]:
    """The expressions that give a column of the result, of each row or part of a UNION.

    Args:
        source: An INSERT statement, or a query.
        position: Position of the column, from 0.

    Yields:
        Each expression; None for a row that is too short.
    """
    if isinstance(source, Insert):
        if source.query is not None:
            yield from expressions_at(source.query, position)
        for row in source.rows or ():
            yield row.items[position] if position < len(row.items) else None
        return
    yield from _of_body(source.body, position)


def _of_body(body: Node, position: int) -> Iterator[Expression | None]:
    if isinstance(body, Query):
        yield from expressions_at(body, position)
    elif isinstance(body, SetOperation):
        for operand in body.operands:
            yield from expressions_at(operand, position)
    elif isinstance(body, Values):
        for row in body.rows:
            yield row.items[position] if position < len(row.items) else None
    elif isinstance(body, Select):
        values = [item.value for item in body.items]
        star = next((i for i, value in enumerate(values) if isinstance(value, Star)), None)
        if star is None or star > position:
            value = values[position] if position < len(values) else None
            if value is None or not isinstance(value, Star):
                yield value
        elif len(body.tables) == 1 and isinstance(body.tables[0], DerivedTable):
            yield from expressions_at(body.tables[0].query, position - star)


def leaves_to_server(
    value: Expression | None,
    text: StatementText,
    environment: Environment,
    *,
    zero_is_chosen: bool,
) -> bool:
    """True if a value makes the server choose one for an AUTO_INCREMENT column.

    Args:
        value: Expression of the value; None where there is none.
        text: Text that the expression stands in.
        environment: Environment in which evaluation has no effects.
        zero_is_chosen: True if 0 does so, too: sql_mode has no NO_AUTO_VALUE_ON_ZERO.
    """
    if value is None or isinstance(value, Default):
        return True
    if isinstance(value, Literal) and value.kind is LiteralKind.NUMBER:
        return zero_is_chosen and not text.text_of(value).strip("0.")
    if isinstance(value, Subquery):
        return any(
            leaves_to_server(each, text, environment, zero_is_chosen=zero_is_chosen)
            for each in expressions_at(value.query, 0)
            if each is not None
        )
    found = as_number(evaluate(value, text, environment))
    if isinstance(found, Unknown):
        return False
    return found is None or (found == 0 and zero_is_chosen)


# Local variables -----------------------------------------------------------------------------


class VariablePlace(NamedTuple):
    """A place where a statement stands for the value of a local variable.

    Attributes:
        node: Name of the variable at that place.
        is_limit: True in LIMIT, where the bare number is written.
    """

    node: Name
    is_limit: bool


def variable_places(statement: Node, names: Collection[str]) -> list[VariablePlace]:
    """List the places where a statement stands for the values of local variables, in the order of the text.

    The name of a column that is set, and a name of which only the name matters, are left out.

    Args:
        statement: Statement of a routine's body.
        names: Names of the variables in lower case; of rows' fields as `row.field`, or `row.*` for
            all.
    """
    found = [
        place for place in _value_names(statement, is_limit=False) if _is_named(place.node, names)
    ]
    found.sort(key=lambda place: place.node.at)
    return found


def _is_named(node: Name, names: Collection[str]) -> bool:
    parts = [part.lower() for part in node.parts]
    return ".".join(parts) in names or (len(parts) == 2 and f"{parts[0]}.*" in names)


def _value_names(node: Node, *, is_limit: bool) -> Iterator[VariablePlace]:
    """The names that stand for values."""
    if isinstance(node, Name):
        yield VariablePlace(node, is_limit)
        return
    for each in _with_values(node):
        yield from _value_names(each, is_limit=is_limit or isinstance(node, Limit))


_OF_COLUMNS: Final = ("VALUES", "VALUE", "DEFAULT")


def _with_values(node: Node) -> Iterable[Node]:
    """The parts of a node that have values."""
    if isinstance(node, Default | Into):
        return ()
    if isinstance(node, Call) and node.upper_name in _OF_COLUMNS and node.database is None:
        return ()
    if isinstance(node, Assignment | SetItem):
        return () if node.value is None else (node.value,)
    if isinstance(node, Match):
        return (node.against,)
    if isinstance(node, Operation) and node.operator == "COLLATE":
        return node.operands[:1]
    if isinstance(node, LoadData):
        return node.assignments
    if isinstance(node, Diagnostics):
        return [value for _, value in node.items]
    if isinstance(node, CreateTable):
        return () if node.query is None else (node.query,)
    return children(node)


def with_constants(
    statement: Node,
    text: StatementText,
    names: Collection[str],
    value_of: Callable[[str], tuple[str, Value]],
    flavor: Flavor,
) -> str:
    """Give the text that is logged for a statement of a routine: NAME_CONST in the place of variables.

    Args:
        statement: Statement as it stands in the body.
        text: Text of the whole body.
        names: Names of the variables as in `variable_places`.
        value_of: Gives a variable's name as declared, and its value.
        flavor: Flavor of the server whose notation is followed.

    Source: MariaDB sql/sp_head.cc, subst_spvars; MySQL sql/sp_instr.cc, of the same name.
    """
    parts: list[str] = []
    end = statement.at
    has_escapes = not text.dialect.no_backslash_escapes
    for node, is_limit in variable_places(statement, names):
        name, value = value_of(".".join(node.parts))
        is_mariadb = flavor is Flavor.MARIADB
        shown = constant(value, is_mariadb=is_mariadb, has_escapes=has_escapes)
        parts.append(text.text_of(Node(end, node.at)))
        parts.append(
            shown
            if is_limit
            else f" NAME_CONST('{escaped(name, has_escapes=has_escapes)}',{shown})"
        )
        end = node.end
    return "".join([*parts, text.text_of(Node(end, statement.end))])


# User variables ------------------------------------------------------------------------------


class RowsTried(NamedTuple):
    """Progress of a server that looks at a user variable only when it needs the value: MySQL.

    Attributes:
        changed: Number of changed rows; None: as many as were given.
        fails: True if the statement ended with an error behind them.
    """

    changed: int | None = None
    fails: bool = False


def user_variables_read(
    statement: Node, text: StatementText, tried: RowsTried | None = None
) -> list[str]:
    """The user variables that a statement reads, in the order in which the servers look at them.

    UPDATE looks at its WHERE clause first. A name is given as the statement writes it first.

    Args:
        statement: Statement whose variables are looked for.
        text: Text that the statement stands in.
        tried: Rows that the statement tried; only variables needed for them count. None counts all.
    """
    if tried is None:
        reads = list(_reads(statement))
    else:
        reads = [one for part in _needed(statement, tried) for one in _reads(part, is_lazy=True)]
    reads.sort(key=lambda node: node.at)
    if isinstance(statement, Update) and (where := statement.where) is not None:
        reads.sort(key=lambda node: node.at < where.at)
    found: dict[str, str] = {}
    for node in reads:
        found.setdefault(node.name, _written_name(text.text_of(node)))
    return list(found.values())


def user_variables_loaded(statement: Node) -> frozenset[str]:
    """The user variables that LOAD DATA reads columns of its file into, before they are read."""
    columns = (statement.columns or ()) if isinstance(statement, LoadData) else ()
    return frozenset(each.name for each in columns if isinstance(each, UserVariable))


_VARIABLE: Final = re.compile(
    r"""@(?:`((?:[^`]|``)*)`|'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([\w.$]+))"""
)


def _written_name(written: str) -> str:
    """The name of a user variable that a text begins with, as it stands there."""
    found = _VARIABLE.match(written)
    if found is None:
        return written[1:]
    quote, name = written[1], found[found.lastindex or 0]
    return name.replace(quote * 2, quote) if quote in "`'\"" else name


def _reads(node: Node, *, is_lazy: bool = False) -> Iterator[UserVariable]:
    if isinstance(node, UserVariable):
        yield node
    elif isinstance(node, Assign):
        yield from _reads(node.value, is_lazy=is_lazy)
    elif not isinstance(node, Into):
        parts: Iterable[Node] = node.assignments if isinstance(node, LoadData) else children(node)
        if is_lazy and isinstance(node, Call) and node.name.upper() in _FIRST_VALUE:
            parts = _up_to_value(node.arguments)
        for each in parts:
            yield from _reads(each, is_lazy=is_lazy)


_FIRST_VALUE: Final = frozenset(("COALESCE", "IFNULL"))


def _up_to_value(arguments: Sequence[Expression]) -> Iterator[Expression]:
    """The arguments up to the first that is a value for sure."""
    for each in arguments:
        yield each
        if isinstance(each, Literal) and each.kind is not LiteralKind.NULL:
            return


def _needed(statement: Node, tried: RowsTried) -> Iterator[Node]:
    """The parts of a statement that are evaluated."""
    has_none = tried.changed == 0 and not tried.fails
    if isinstance(statement, Update) and has_none:
        for each in (*statement.tables, statement.where):
            if each is not None:
                yield each
    elif isinstance(statement, Insert):
        if statement.rows is not None:
            count = (tried.changed or 0) + 1 if tried.fails else len(statement.rows)
            yield from statement.rows[:count]
        elif statement.query is not None:
            body = statement.query.body
            if has_none and isinstance(body, Select):
                selected = set(map(id, body.items))
                yield from (each for each in children(body) if id(each) not in selected)
            else:
                yield statement.query
        given = len(statement.rows) if statement.rows is not None else 1
        if statement.on_duplicate is not None and tried.changed not in (None, given):
            yield from statement.on_duplicate
    else:
        yield statement


def user_variables_assigned(node: Node) -> frozenset[str]:
    """The names of the user variables that a statement sets: by `:=`, INTO, or LOAD DATA."""
    return frozenset(each.name.lstrip("@") for each in _assigned(node))


def user_variables_named(node: Node, text: StatementText) -> list[str]:
    """List the user variables that a statement sets, named as it writes them, in the order of the text."""
    assigned = sorted(_assigned(node), key=lambda each: each.at)
    return [_written_name(text.text_of(each)) for each in assigned]


def _assigned(node: Node) -> Iterator[UserVariable | SetItem]:
    if isinstance(node, Assign):
        yield node.target
    elif isinstance(node, Into):
        yield from (each for each in node.variables if isinstance(each, UserVariable))
    elif isinstance(node, LoadData):
        columns = node.columns or ()
        yield from (each for each in columns if isinstance(each, UserVariable))
    elif isinstance(node, SetItem) and node.name.startswith("@"):
        yield node
    for each in children(node):
        yield from _assigned(each)

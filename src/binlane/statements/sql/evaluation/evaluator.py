"""The value of an expression, as far as a text and a session tell it; `UNKNOWN` is never a guess.

A tree is shared by all statements of a shape: what a literal says is read from the statement's own
text. What an expression assigns and calls is done, in the order in which the servers do it.
Where one value alone is not known, all possible ones may be, for texts of dynamic SQL:
`SET @s = IF((SELECT COUNT(*) FROM …) > 0, 'ALTER …', 'SELECT 1')` leaves one of two in @s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias

from binlane.log.codec.client_text import told_text
from binlane.log.codec.types import Flavor
from binlane.statements.sql.evaluation.functions import FUNCTIONS, Context, call_built_in
from binlane.statements.sql.evaluation.known_names import Environment, Given, StatementText
from binlane.statements.sql.evaluation.stored_types import StoredType
from binlane.statements.sql.evaluation.values import (
    BINARY,
    OPERATORS,
    UNKNOWN,
    Temporal,
    TemporalKind,
    Text,
    Value,
    as_number,
    equal,
    exact,
    negation,
    negative,
    plain_text,
    rounded,
    scale_of,
    truth,
)
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import TokenKind, tokenise, value_of
from binlane.statements.sql.tree.expressions import (
    Assign,
    Call,
    Case,
    Cast,
    Expression,
    Literal,
    LiteralKind,
    Name,
    Node,
    Operation,
    Query,
    Select,
    Star,
    Subquery,
    SystemVariable,
    UserVariable,
    children,
)


def evaluate(node: Expression, text: StatementText, environment: Environment) -> Value:
    """Give the value of an expression; its assignments and calls are carried out.

    Args:
        node: Node of the tree to evaluate.
        text: Text of the statement at hand.
        environment: Meaning of the names and calls in the expression.
    """
    return Evaluation(text, environment).value(node)


def holds(node: Expression, text: StatementText, environment: Environment) -> bool | None:
    """True if a condition holds; None if unknown values decide that. NULL does not hold."""
    return Evaluation(text, environment).holds(node)


def possible_values(
    node: Expression, text: StatementText, environment: Environment
) -> Values | None:
    """All values that an expression can have; None where they cannot be told.

    Parts are evaluated more than once: the environment is to be one in which that does no harm.
    """
    return Evaluation(text, environment).possible(node)


def selected_alone(query: Query) -> Expression | None:
    """The expression of `SELECT expression`, which needs no row; None of other queries."""
    select = query.body
    if not isinstance(select, Select) or query.limit is not None or query.into is not None:
        return None
    if select.tables or select.where is not None or select.having is not None or select.group_by:
        return None
    value = select.items[0].value
    return value if len(select.items) == 1 and not isinstance(value, Star) else None


# Literals -----------------------------------------------------------------------------------------


def string_content(text: str, dialect: Dialect) -> str:
    """Give the content of a string literal: of several strings side by side, of one with a prefix."""
    inside = text[1:-1]
    if text[:1] == "$":  # $$ … $$
        return value_of(TokenKind.STRING, text, dialect)
    if text[:1] == "'" == text[-1:] and "'" not in inside and "\\" not in inside:
        return told_text(inside, dialect.charset) if dialect.charset else inside
    tokens = tokenise(text, dialect)
    return "".join(token.value for token in tokens if token.kind is TokenKind.STRING)


def content_of(node: Literal, text: StatementText) -> str:
    """The characters of a literal; of hexadecimal digits and bits the bytes, one a character."""
    written = text.text_of(node)
    if node.kind in (LiteralKind.HEX, LiteralKind.BIT):
        return bytes_value(written, is_hexadecimal=node.kind is LiteralKind.HEX)
    if node.kind is LiteralKind.NUMBER:
        return written
    return string_content(written, text.dialect)


_OTHERWISE_IN_ORACLE: Final = frozenset(
    (
        *("CONCAT", "INSTR", "LENGTH", "LPAD", "LTRIM", "REGEXP_REPLACE", "REPLACE", "RPAD"),
        *("RTRIM", "SUBSTR", "SUBSTRING", "TRIM"),
    )
)
"""Functions that do something else in sql_mode ORACLE."""
_WORDS: Final = {LiteralKind.NULL: None, LiteralKind.TRUE: 1, LiteralKind.FALSE: 0}
_MOMENTS: Final = {
    LiteralKind.DATE: TemporalKind.DATE,
    LiteralKind.TIME: TemporalKind.TIME,
    LiteralKind.TIMESTAMP: TemporalKind.TIMESTAMP,
}


def number_value(text: str) -> int | Decimal | float:
    """Give the number that a literal stands for."""
    if text.isdecimal():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)


def bytes_value(text: str, *, is_hexadecimal: bool) -> str:
    """The bytes of `0x41`, `x'41'`, `0b1` or `b'1'`, behind an introducer or not."""
    digits = text.rsplit(maxsplit=1)[-1].rstrip("'").rpartition("'")[2]
    if digits[:2].lower() in {"0x", "0b"}:
        digits = digits[2:]
    if is_hexadecimal:
        return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2)).decode("latin-1")
    return int(digits or "0", 2).to_bytes((len(digits) + 7) // 8, "big").decode("latin-1")


Operands: TypeAlias = Sequence[Expression]
_VALUES_MAX: Final = 64
"""More than so many are as good as not known."""
_COALESCING: Final = frozenset(("IFNULL", "COALESCE", "NVL"))
_AGGREGATES: Final = frozenset(
    (
        *("COUNT", "SUM", "AVG", "MIN", "MAX", "GROUP_CONCAT", "BIT_AND", "BIT_OR", "BIT_XOR"),
        *("STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP"),
        *("JSON_ARRAYAGG", "JSON_OBJECTAGG", "ANY_VALUE"),
    )
)
Values = tuple[Value, ...]
"""Each once, in the order of the text."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Values of the expressions of one statement.

    Attributes:
        text: Text of the statement at hand.
        environment: Meaning of names and calls in the statement.
    """

    text: StatementText
    environment: Environment

    def value(self, node: Expression) -> Value:
        """The value of an expression; what it assigns and calls is done."""
        reader = self._readers.get(node.__class__)
        return UNKNOWN if reader is None else reader(self, node)

    def holds(self, node: Expression) -> bool | None:
        """True if a condition holds; None if unknown values decide that."""
        value = truth(self.value(node))
        return None if value is UNKNOWN else value == 1

    def possible(self, node: Expression) -> Values | None:
        """All values that an expression can have; None where they cannot be told."""
        found = self._possible(node)
        return None if found is None or len(found) > _VALUES_MAX else found

    def _literal(self, node: Literal) -> Value:
        kind = node.kind
        if kind in _WORDS:
            return _WORDS[kind]
        written = self.text.text_of(node)
        if kind is LiteralKind.NUMBER:
            return number_value(written)
        if kind in _MOMENTS:
            return Temporal(_MOMENTS[kind], string_content(written, self.text.dialect))
        collation = self.environment.collation
        if introducer := node.introducer.lower():
            charset = "utf8mb3" if introducer == "n" else introducer
            collation = self.environment.default_collation(charset)
        if kind is LiteralKind.STRING:
            return Text(string_content(written, self.text.dialect), collation)
        content = bytes_value(written, is_hexadecimal=kind is LiteralKind.HEX)
        return Text(content, collation) if introducer else Text(content, BINARY, is_number=True)

    def _name(self, node: Name) -> Value:
        return self._local(".".join(node.parts))

    def _local(self, name: str) -> Value:
        try:
            return self.environment.local(name)
        except LookupError:
            return UNKNOWN

    def _assign(self, node: Assign) -> Value:
        value = self.value(node.value)
        self.environment.assign_user_variable(node.target.name, value)
        return value

    def _subquery(self, node: Subquery) -> Value:
        inner = selected_alone(node.query)
        return UNKNOWN if inner is None else self.value(inner)

    # Operations --------------------------------------------------------------------------------

    def _operation(self, node: Operation) -> Value:
        lazy = self._lazy_operators.get(node.operator)
        if lazy is not None:
            value = lazy(self, node.operands)
            return negation(value) if node.is_negated else value
        apply = OPERATORS.get(node.operator)
        if apply is None:
            return UNKNOWN
        value, *others = [self.value(each) for each in node.operands]
        if node.operator == "LIKE" and len(others) > 1:
            return UNKNOWN
        for other in others:
            value = apply(value, other, self.environment.flavor)
        return negation(value) if node.is_negated else value

    def _and_or(self, nodes: Operands, decisive: int) -> Value:
        """AND and OR; what follows is left alone once an operand tells the result."""
        found: Value = 1 - decisive
        for node in nodes:
            value = truth(self.value(node))
            if value == decisive:
                return decisive
            if found is not UNKNOWN and value != 1 - decisive:
                found = value
        return found

    def _xor(self, nodes: Operands) -> Value:
        values = [truth(self.value(node)) for node in nodes]
        if None in values:
            return None
        return UNKNOWN if UNKNOWN in values else values.count(1) % 2

    def _between(self, nodes: Operands) -> Value:
        values = [self.value(node) for node in nodes]
        if not all(isinstance(each, Text) for each in values) and not any(
            isinstance(each, Temporal) for each in values
        ):
            values = [as_number(each) for each in values]
        value, low, high = values
        at_least = OPERATORS[">="](value, low, self.environment.flavor)
        at_most = OPERATORS["<="](value, high, self.environment.flavor)
        if at_least == 0 or at_most == 0:
            return 0
        return UNKNOWN if UNKNOWN in (at_least, at_most) else at_least and at_most

    def _in(self, nodes: Operands) -> Value:
        value, *members = [self.value(node) for node in nodes]
        results = [UNKNOWN if value is UNKNOWN else equal(value, member) for member in members]
        if 1 in results:
            return 1
        return UNKNOWN if UNKNOWN in results else None if None in results else 0

    def _is_null(self, nodes: Operands) -> Value:
        value = self.value(nodes[0])
        return UNKNOWN if value is UNKNOWN else int(value is None)

    def _is(self, node: Expression, wanted: int) -> Value:
        value = truth(self.value(node))
        return UNKNOWN if value is UNKNOWN else int(value == wanted)

    def _collate(self, nodes: Operands) -> Value:
        value, name = self.value(nodes[0]), nodes[1]
        assert isinstance(name, Name)
        return Text(value.content, name.parts[-1].lower()) if isinstance(value, Text) else value

    def _exists(self, nodes: Operands) -> Value:
        node = nodes[0]
        if not isinstance(node, Subquery) or (inner := selected_alone(node.query)) is None:
            return UNKNOWN
        self.value(inner)
        return 1

    def _concat(self, nodes: Operands) -> Value:
        values = [self.value(node) for node in nodes]
        if self.text.dialect.is_oracle and None in values:
            return UNKNOWN  # it counts as an empty string there, but for two of them
        return call_built_in(
            "CONCAT", values, Context(self.environment.collation, self.environment.flavor)
        )

    def _case(self, node: Case) -> Value:
        operand = self.value(node.operand) if node.operand else None
        for condition, result in node.branches:
            value = self.value(condition)
            found = truth(equal(operand, value) if node.operand else value)
            if found is UNKNOWN:
                return UNKNOWN
            if found:
                return self._chosen(result, _results(node))
        if node.otherwise is None:
            return None
        return self._chosen(node.otherwise, _results(node))

    def _chosen(self, node: Expression, among: Operands) -> Value:
        """The value of one of several expressions, in the type that they have together.

        The other operands are looked at if they are literals: evaluating them could have effects.
        """
        value = self.value(node)
        others = [self.value(each) for each in among if each is not node and _is_plain(each)]
        converts = self.environment.flavor is Flavor.MARIADB
        return self._in_one_type(value, others, converts=converts)

    def _in_one_type(
        self, value: Value, others: Sequence[Value], *, converts: bool = True
    ) -> Value:
        """A value as it is in the type that it has together with others.

        Numbers of MySQL's IF and CASE stay as they are.
        """
        if value is None or value is UNKNOWN:
            return value
        if isinstance(value, Text):
            return Text(value.content, value.collation)
        kinds = {type(each) for each in others if each is not None} | {type(value)}
        if kinds & {Text, Temporal} and len(kinds) > 1:
            content = plain_text(value)
            texts = [each for each in (value, *others) if isinstance(each, Text)]
            return Text(content, texts[0].collation if texts else self.environment.collation)
        if not converts:
            return value
        if float in kinds:
            return float(exact(value))  # type: ignore[arg-type]  # all are numbers
        if Decimal in kinds:
            scale = max(scale_of(each) for each in (value, *others) if each is not None)  # type: ignore[arg-type]
            return rounded(exact(value), scale)  # type: ignore[arg-type]
        return value

    def _cast(self, node: Cast) -> Value:
        value = self.value(node.value)
        if node.type is None:
            collation = self.environment.default_collation(node.charset.lower())
            return StoredType(name="VARCHAR", collation=collation).store(value)
        kind = StoredType.of(
            node.type,
            collation=self.environment.collation,
            default_collation=self.environment.default_collation,
        )
        return UNKNOWN if node.is_array else kind.cast(value)

    # Calls -------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Value:
        name = "" if node.database is not None or node.is_quoted else node.upper_name
        if "%" in name:  # `cursor%FOUND` of sql_mode ORACLE
            return self._local(name)
        lazy = self._lazy_functions.get(name)
        if lazy is not None:
            return lazy(self, node.arguments)
        arguments = [self.value(each) for each in node.arguments]
        if name in FUNCTIONS:
            if node.words:  # `TRIM(LEADING …)`, `CHAR(… USING …)`
                return UNKNOWN
            if name in _OTHERWISE_IN_ORACLE and self.text.dialect.is_oracle:
                return UNKNOWN
            return call_built_in(
                name, arguments, Context(self.environment.collation, self.environment.flavor)
            )
        return self.environment.call(node.database, node.name, arguments)

    def _if(self, nodes: Operands) -> Value:
        if len(nodes) != 3:
            return UNKNOWN
        found = self.holds(nodes[0])
        if found is None:
            return UNKNOWN
        return self._chosen(nodes[1 if found else 2], nodes[1:])

    def _coalesce(self, nodes: Operands) -> Value:
        for index, node in enumerate(nodes):
            value = self.value(node)
            if value is not None:
                others = [self.value(each) for each in nodes[index + 1 :] if _is_plain(each)]
                return self._in_one_type(value, others)
        return None

    def _database(self, nodes: Operands) -> Value:
        if nodes:
            return UNKNOWN
        collation = self.environment.default_collation("utf8mb3")
        return Text(self.environment.database, collation) if self.environment.database else None

    # Possible values ---------------------------------------------------------------------------

    def _possible(self, node: Expression) -> Values | None:
        if isinstance(node, UserVariable):
            return self.environment.user_variable_values(node.name)
        if isinstance(node, Assign):
            return self.possible(node.value)
        if isinstance(node, Subquery):
            return self._of_query(node.query)
        if isinstance(node, Case):
            return self._of_case(node)
        if isinstance(node, Call):
            return self._of_call(node)
        if isinstance(node, Operation):
            operands = node.operands[:1] if node.operator == "COLLATE" else node.operands
            rest = node.operands[len(operands) :]
            return self._of_parts(operands, lambda given: replace(node, operands=(*given, *rest)))
        if isinstance(node, Cast):
            return self._of_parts((node.value,), lambda given: replace(node, value=given[0]))
        return self._known(node)

    def _known(self, node: Expression) -> Values | None:
        value = self.value(node)
        return None if value is UNKNOWN else (value,)

    def _of_call(self, node: Call) -> Values | None:
        name = node.upper_name if node.database is None and not node.is_quoted else ""
        if name == "IF" and len(node.arguments) == 3:
            condition, first, last = node.arguments
            return self._of_branches(((condition, first),), last)
        if name in _COALESCING:
            return self._of_coalesce(node.arguments)
        if name == "NULLIF" and len(node.arguments) == 2:
            found = self.possible(node.arguments[0])
            return None if found is None else _joined(found, (None,))
        if name in FUNCTIONS:
            return self._of_parts(node.arguments, lambda given: replace(node, arguments=given))
        return self._known(node)

    def _of_case(self, node: Case) -> Values | None:
        operand = node.operand
        branches = node.branches
        if operand is not None:
            branches = tuple(
                (Operation(each.at, each.end, "=", (operand, each)), result)
                for each, result in branches
            )
        return self._of_branches(branches, node.otherwise)

    def _of_branches(
        self,
        branches: Sequence[tuple[Expression, Expression]],
        otherwise: Expression | None,
    ) -> Values | None:
        made: Values = ()
        for condition, result in branches:
            taken = self.holds(condition)
            if taken is False:
                continue
            values = self.possible(result)
            if values is None:
                return None
            made = _joined(made, values)
            if taken:
                return made
        values = (None,)
        if otherwise is not None and (values := self.possible(otherwise)) is None:
            return None
        return _joined(made, values)

    def _of_coalesce(self, nodes: Sequence[Expression]) -> Values | None:
        made: Values = (None,)
        for node in nodes:
            values = self.possible(node)
            if values is None:
                return None
            made = _joined([each for each in made if each is not None], values)
            if None not in values:
                return made
        return made

    def _of_query(self, query: Query) -> Values | None:
        """Give the possible values of a query as a value: NULL too, where it may have no row."""
        select = query.body
        if not isinstance(select, Select) or len(select.items) != 1:
            return None
        value = select.items[0].value
        if isinstance(value, Star):
            return None
        found = self.possible(value)
        if found is None or selected_alone(query) is not None:
            return found
        is_one_row = not (select.group_by or select.having or query.limit) and has_aggregate(value)
        return found if is_one_row else _joined(found, (None,))

    def _of_parts(
        self,
        parts: Sequence[Expression],
        whole: Callable[[tuple[Expression, ...]], Expression],
    ) -> Values | None:
        """Give the values of a whole for each choice of values for its parts."""
        choices: list[Values] = []
        for part in parts:
            values = self.possible(part)
            if values is None:
                return None
            choices.append(values)
        if prod(map(len, choices)) > _VALUES_MAX:
            return None
        made: dict[Value, None] = {}
        for chosen in product(*choices):
            given = tuple(Given(0, 0, (), value=value) for value in chosen)
            value = self.value(whole(given))
            if value is UNKNOWN:
                return None
            made[value] = None
        return tuple(made)

    _lazy_operators: ClassVar[Mapping[str, Callable[[Evaluation, Operands], Value]]] = (
        MappingProxyType(
            {
                "AND": lambda self, nodes: self._and_or(nodes, 0),
                "OR": lambda self, nodes: self._and_or(nodes, 1),
                "XOR": _xor,
                "NOT": lambda self, nodes: negation(self.value(nodes[0])),
                "NEG": lambda self, nodes: negative(self.value(nodes[0])),
                "POS": lambda self, nodes: self.value(nodes[0]),
                "BETWEEN": _between,
                "IN": _in,
                "IS NULL": _is_null,
                "IS UNKNOWN": _is_null,
                "IS TRUE": lambda self, nodes: self._is(nodes[0], 1),
                "IS FALSE": lambda self, nodes: self._is(nodes[0], 0),
                "COLLATE": _collate,
                "BINARY": lambda self, nodes: StoredType(name="VARBINARY").store(
                    self.value(nodes[0])
                ),
                "EXISTS": _exists,
                "CONCAT": _concat,
            }
        )
    )
    """Operators that do not simply take two values."""
    _lazy_functions: ClassVar[Mapping[str, Callable[[Evaluation, Operands], Value]]] = (
        MappingProxyType(
            {
                "IF": _if,
                **dict.fromkeys(_COALESCING, _coalesce),
                **dict.fromkeys(("DATABASE", "SCHEMA"), _database),
            }
        )
    )
    """Functions that do not evaluate all their arguments, or need none but the session."""
    _readers: ClassVar[Mapping[type, Callable[[Evaluation, Any], Value]]] = MappingProxyType(
        {
            Literal: _literal,
            Given: lambda _, node: node.value,
            Name: _name,
            UserVariable: lambda self, node: self.environment.user_variable(node.name),
            SystemVariable: lambda self, node: self.environment.system_variable(
                node.name, node.scope
            ),
            Assign: _assign,
            Subquery: _subquery,
            Operation: _operation,
            Case: _case,
            Cast: _cast,
            Call: _call,
        }
    )
    """Readers by the kind of node; other nodes have no known value."""


def _is_plain(node: Expression) -> bool:
    """True if a node is a literal, with a sign or without."""
    if isinstance(node, Operation) and node.operator in {"NEG", "POS"}:
        node = node.operands[0]
    return isinstance(node, Literal)


def _results(node: Case) -> Operands:
    results = [result for _, result in node.branches]
    return results if node.otherwise is None else [*results, node.otherwise]


def _joined(first: Sequence[Value], more: Sequence[Value]) -> Values:
    return tuple(dict.fromkeys((*first, *more)))


def has_aggregate(node: Node) -> bool:
    """True if a node calls an aggregate outside of the queries inside of it."""
    if isinstance(node, Call) and node.upper_name in _AGGREGATES and node.over is None:
        return True
    return any(has_aggregate(each) for each in children(node) if not isinstance(each, Query))

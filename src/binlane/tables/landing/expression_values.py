"""The values of an expression over the columns of rows, a column at a time, as the servers have them.

What is here is exact on MariaDB and MySQL alike, whatever a session's settings are; all else is
refused before any value is looked at: division, text compared by a collation, the time of day of a
moment, functions that are not named here. Exact are whole numbers and DECIMAL, DOUBLE by `+`, `-`,
`*`, conditions, and what is cut and joined of text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from binlane.statements.sql.evaluation.evaluator import content_of, number_value
from binlane.statements.sql.evaluation.known_names import StatementText
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tree.expressions import (
    Call,
    Case,
    Expression,
    Literal,
    LiteralKind,
    Name,
    Operation,
)
from binlane.tables.columnar.arrow_types import UNSIGNED_LONG, has_zone
from binlane.tables.landing.column_families import decimal_digits, family_of
from binlane.tables.landing.column_values import NotToldError, Values, mapped

_INTEGER_TYPE: Final = UNSIGNED_LONG
_LONG: Final = ((-(1 << 63), (1 << 63) - 1), (0, (1 << 64) - 1))
_WIDE_DIGITS: Final = 76
_DECIMAL_DIGITS_MAX: Final = 38
_SCALE_MAX: Final = 30
UNKNOWN_CHARSET: Final = "unknown"
"""Character set of columns whose definitions name none, in a database of which nothing is known."""
_UTF8: Final = frozenset({"utf8mb4", "utf8mb3"})
_CHARS_MAX: Final = "65535"
_TEMPORAL: Final = frozenset({"DATE", "DATETIME"})
_NUMERIC: Final = frozenset({"INTEGER", "DECIMAL", "DOUBLE"})


class NotComputableError(ValueError):
    """An expression, or a type, of which the values are not known to be the servers' own."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Values, and the column that they would make: its type decides what is done with them.

    Attributes:
        column: INTEGER are BIGINT, signed or not; DOUBLE, DECIMAL, VARCHAR, DATE, DATETIME.
        values: The values; those of BIGINT are `decimal128(20, 0)`, those of DOUBLE `float64`.
        is_null: Whether it is the literal NULL, which has the type of whatever it stands beside.
        constant: The number of a literal; None of all else.
        is_mixed: Whether it has numbers of several scales, each of which it has as text.
    """

    column: TableColumn
    values: Values
    is_null: bool = False
    constant: int | None = None
    is_mixed: bool = False

    @property
    def family(self) -> str:
        """`INTEGER`, `DECIMAL`, `DOUBLE`, `TEXT`, `DATE` or `DATETIME`; of others the type's name."""
        return family_of(self.column)


def long(values: Values, *, is_unsigned: bool = False) -> Typed:
    """A whole number."""
    column = TableColumn(name="", type_name="BIGINT", is_unsigned=is_unsigned)
    return Typed(column, values if values.type == _INTEGER_TYPE else values.cast(_INTEGER_TYPE))


def text(values: Values, charset: str) -> Typed:
    """A text; the character set is empty of one that any can hold."""
    column = TableColumn(name="", type_name="VARCHAR", arguments=(_CHARS_MAX,), charset=charset)
    return Typed(column, values)


def _double(values: Values) -> Typed:
    finite = pc.all(pc.is_finite(values)).as_py()
    if finite is False:
        raise NotToldError("a number is too large")
    return Typed(TableColumn(name="", type_name="DOUBLE"), values)


def _decimal(values: Values) -> Typed:
    """A DECIMAL of as many digits as the values' type has."""
    precision, scale = values.type.precision, values.type.scale
    if precision > _DECIMAL_DIGITS_MAX or scale > _SCALE_MAX:
        raise NotComputableError("a DECIMAL of so many digits")
    column = TableColumn(name="", type_name="DECIMAL", arguments=(str(precision), str(scale)))
    return Typed(column, values)


def of_column(column: TableColumn, values: Values) -> Typed:
    """The values of a column in a table's rows.

    Args:
        column: The definition of the column.
        values: The values as rows have them.

    Raises:
        NotComputableError: If the values in rows are not all that the server has of the column.
    """
    family, kind = family_of(column), values.type
    if family == "INTEGER" and (pa.types.is_integer(kind) or kind == UNSIGNED_LONG):
        found = long(values, is_unsigned=column.is_unsigned)
        return replace(found, column=replace(found.column, is_zerofill=column.is_zerofill))
    if family == "DECIMAL" and pa.types.is_decimal(kind) and not column.is_zerofill:
        return _decimal(values)
    if family == "DOUBLE" and pa.types.is_float64(kind) and len(column.arguments) < 2:
        return _double(values)
    if family == "TEXT" and pa.types.is_string(kind):
        return text(values, column.charset or UNKNOWN_CHARSET)
    if family in _TEMPORAL and pa.types.is_temporal(kind) and not has_zone(kind):
        return Typed(column, values)
    raise NotComputableError(f"values of type {column.type_name}")


@dataclass(frozen=True, slots=True)
class Computing:
    """Expressions over some rows.

    Attributes:
        text: The statement's text that the tree stands for.
        column: The values of a column by its name in small letters; raises `NotComputableError` as
            `of_column`, also where there is none.
        rows: The number of the rows.
    """

    text: StatementText
    column: Callable[[str], Typed]
    rows: int

    def value(self, node: Expression) -> Typed:
        """The values of an expression.

        Raises:
            NotComputableError: If it has a part that is not exact here; that hangs on no value.
            NotToldError: If a value is one that the servers do not have, or have in their own way.
        """
        if isinstance(node, Name):
            return self.column(node.parts[-1].lower())
        if isinstance(node, Literal):
            return self._literal(node)
        if isinstance(node, Case):
            return self._case(node)
        if isinstance(node, Operation):
            return self._operation(node)
        if isinstance(node, Call) and node.database is None and not node.is_quoted:
            return self._call(node)
        raise NotComputableError(self._shown(node))

    def _shown(self, node: Expression) -> str:
        return self.text.text_of(node)[:40]

    def _literal(self, node: Literal) -> Typed:
        if node.kind is LiteralKind.NULL:
            return self._null()
        if node.kind in {LiteralKind.TRUE, LiteralKind.FALSE}:
            return self._repeated(int(node.kind is LiteralKind.TRUE))
        if node.kind is LiteralKind.NUMBER:
            number = number_value(content_of(node, self.text))
            if isinstance(number, int):
                return self._repeated(number)
            scalar: Any = pa.scalar(number)
            numbers = pa.chunked_array([pa.repeat(scalar, self.rows)])
            return _double(numbers) if isinstance(number, float) else _decimal(numbers)
        if node.kind is LiteralKind.STRING and node.introducer.lower() in {
            "",
            "utf8mb4",
            "_utf8mb4",
        }:
            content = content_of(node, self.text)
            repeated = pa.repeat(pa.scalar(content, pa.string()), self.rows)
            return text(pa.chunked_array([repeated]), "" if content.isascii() else "utf8mb4")
        raise NotComputableError(self._shown(node))

    def _repeated(self, number: int) -> Typed:
        if number > _LONG[True][1]:
            raise NotComputableError("so large a number")
        values = pa.repeat(pa.scalar(number, _INTEGER_TYPE), self.rows)
        found = long(pa.chunked_array([values]), is_unsigned=number > _LONG[False][1])
        return replace(found, constant=number)

    def _null(self) -> Typed:
        nulls = pa.chunked_array([pa.nulls(self.rows, _INTEGER_TYPE)])
        return replace(long(nulls), is_null=True)

    # Operators ------------------------------------------------------------------------------------

    def _operation(self, node: Operation) -> Typed:
        operator, operands = node.operator, node.operands
        if operator in _ARITHMETIC:
            return reduce(_ARITHMETIC[operator], [self.value(each) for each in operands])
        if operator == "CONCAT":
            return _concat(*(self.value(each) for each in operands))
        if operator in {"NEG", "POS"}:
            value = self.value(operands[0])
            if operator == "POS":
                return value
            if value.constant is not None:
                return self._repeated(-value.constant)
            return _negative(self._repeated(0), value)
        found = self._condition(node)
        if found is None:
            raise NotComputableError(self._shown(node))
        return long(_as_number(pc.invert(found) if node.is_negated else found))

    def _condition(self, node: Operation) -> Values | None:
        """The values of an operator that holds or does not; None of other operators."""
        operator, operands = node.operator, node.operands
        if operator in _LOGICAL:
            return reduce(_LOGICAL[operator], [self.holds(each) for each in operands])
        if operator == "NOT":
            return pc.invert(self.holds(operands[0]))
        if operator == "IS NULL":
            return pc.is_null(self.value(operands[0]).values)
        if operator in {"IS TRUE", "IS FALSE"}:
            holds = self.holds(operands[0])
            holds = holds if operator == "IS TRUE" else pc.invert(holds)
            return pc.fill_null(holds, pa.scalar(value=False))
        if operator in _COMPARING:
            return _compared(operator, *(self.value(each) for each in operands))
        if operator == "<=>":
            first, last = (self.value(each) for each in operands)
            same = pc.fill_null(_compared("=", first, last), pa.scalar(value=False))
            return pc.or_(same, pc.and_(pc.is_null(first.values), pc.is_null(last.values)))
        if operator == "BETWEEN":
            value, low, high = (self.value(each) for each in operands)
            return pc.and_kleene(_compared(">=", value, low), _compared("<=", value, high))
        if operator == "IN":
            value, *members = [self.value(each) for each in operands]
            return reduce(pc.or_kleene, [_compared("=", value, each) for each in members])
        return None

    def holds(self, node: Expression) -> Values:
        """Return a condition's values as booleans; NULL where the condition is NULL."""
        value = self.value(node)
        if value.family not in _NUMERIC:
            raise NotComputableError(self._shown(node))
        return pc.not_equal(value.values, pa.scalar(0).cast(value.values.type))

    # Functions that choose ------------------------------------------------------------------------

    def _case(self, node: Case) -> Typed:
        if node.operand is None:
            conditions = [self.holds(when) for when, _ in node.branches]
        else:
            operand = self.value(node.operand)
            conditions = [_compared("=", operand, self.value(when)) for when, _ in node.branches]
        results = [self.value(then) for _, then in node.branches]
        otherwise = self._null() if node.otherwise is None else self.value(node.otherwise)
        return self._chosen(conditions, [*results, otherwise])

    def _chosen(self, conditions: Sequence[Values], results: Sequence[Typed]) -> Typed:
        """The result of the first condition that holds, or the last one."""
        *alike, found = _alike(results)
        values = found.values
        for condition, result in reversed(list(zip(conditions, alike, strict=True))):
            holds = pc.fill_null(condition, pa.scalar(value=False))
            values = pc.if_else(holds, result.values, values)
        return replace(found, values=values)

    def _call(self, node: Call) -> Typed:
        name, arguments = node.upper_name, [self.value(each) for each in node.arguments]
        if node.words or node.order_by or node.over is not None:
            raise NotComputableError(self._shown(node))
        if name == "IF" and len(arguments) == 3:
            return self._chosen([self.holds(node.arguments[0])], arguments[1:])
        if name in {"COALESCE", "IFNULL"} and arguments:
            *others, last = arguments
            return self._chosen([pc.is_valid(each.values) for each in others], [*others, last])
        if name == "NULLIF" and len(arguments) == 2:
            equal = _compared("=", *arguments)
            return self._chosen([equal], [self._null(), arguments[0]])
        function = FUNCTIONS.get((name, len(arguments))) or FUNCTIONS.get((name, -1))
        if function is None or not arguments:
            raise NotComputableError(self._shown(node))
        return function(*arguments)


def _as_number(condition: Values) -> Values:
    return condition.cast(pa.int8()).cast(_INTEGER_TYPE)


def _alike(results: Sequence[Typed]) -> list[Typed]:
    """Results of one type."""
    own = [each for each in results if not each.is_null]
    if not own:
        return list(results)
    families = {each.family for each in own}
    if families == {"INTEGER"}:
        signs = {each.column.is_unsigned for each in own}
        if len(signs) > 1 or any(each.column.is_zerofill for each in own):
            raise NotComputableError("numbers with and without a sign")
        kind: Any = _INTEGER_TYPE
        column = own[0].column
    elif families <= {"INTEGER", "DECIMAL"}:
        digits = [_digits(each) for each in own]
        scale = max(scale for _, scale in digits)
        whole = max(precision - scale for precision, scale in digits)
        made = _decimal(pa.chunked_array([pa.array([], _decimal_type(whole + scale, scale))]))
        kind, column = made.values.type, made.column
    elif families == {"TEXT"}:
        kind = pa.string()
        column = text(own[0].values, _joined_charset(own)).column
    elif len(families) == 1 and len({(e.column.type_name, e.column.arguments) for e in own}) == 1:
        kind, column = own[0].values.type, own[0].column
    else:
        raise NotComputableError("values of several types")
    is_mixed = any(each.is_mixed for each in own) or (
        bool(families & {"DECIMAL"}) and len({_digits(each)[1] for each in own}) > 1
    )
    return [
        Typed(
            column,
            pa.chunked_array([pa.nulls(len(each.values), kind)])
            if each.is_null
            else each.values.cast(kind),
            is_mixed=is_mixed,
        )
        for each in results
    ]


# Numbers ------------------------------------------------------------------------------------------


def _digits(value: Typed) -> tuple[int, int]:
    return (20, 0) if value.family == "INTEGER" else decimal_digits(value.column)


def _decimal_type(precision: int, scale: int) -> pa.DataType:
    kind: Any = pa.decimal128 if precision <= _DECIMAL_DIGITS_MAX else pa.decimal256
    made: pa.DataType = kind(precision, scale)
    return made


def _arithmetic(apply: Callable[[Values, Values], Values], first: Typed, last: Typed) -> Typed:
    families = {first.family, last.family}
    if families == {"INTEGER"}:
        is_unsigned = first.column.is_unsigned or last.column.is_unsigned
        wide = [each.values.cast(pa.decimal256(20, 0)) for each in (first, last)]
        return long(_in_range(apply(*wide), is_unsigned=is_unsigned), is_unsigned=is_unsigned)
    if families <= {"INTEGER", "DECIMAL"}:
        wide = [each.values.cast(pa.decimal256(*_digits(each))) for each in (first, last)]
        made = apply(*wide)
        if made.type.precision > _DECIMAL_DIGITS_MAX:
            raise NotComputableError("a DECIMAL of so many digits")
        return _decimal(made.cast(pa.decimal128(made.type.precision, made.type.scale)))
    if families <= {"INTEGER", "DOUBLE"}:
        return _double(apply(*(_as_double(each) for each in (first, last))))
    raise NotComputableError("arithmetic of other values than numbers")


def _negative(zero: Typed, value: Typed) -> Typed:
    if value.column.is_unsigned or value.family not in {"INTEGER", "DECIMAL"}:
        raise NotComputableError("the negative of other than exact numbers with a sign")
    return _arithmetic(pc.subtract, zero, value)


def _as_double(value: Typed) -> Values:
    if value.family == "DOUBLE":
        return value.values
    if value.column.is_unsigned:
        raise NotComputableError("a number without a sign as a DOUBLE")
    return value.values.cast(pa.int64()).cast(pa.float64(), safe=False)


def _in_range(values: Values, *, is_unsigned: bool) -> Values:
    low, high = _LONG[is_unsigned]
    found: Any = pc.min_max(values).as_py()
    if found["min"] is not None and (found["min"] < low or found["max"] > high):
        raise NotToldError("a number is out of range")
    return values.cast(_INTEGER_TYPE)


def _signed(*values: Typed) -> list[Values]:
    """Whole numbers that divide each other."""
    if any(each.family != "INTEGER" or each.column.is_unsigned for each in values):
        raise NotComputableError("DIV and MOD of other than whole numbers with a sign")
    return [each.values.cast(pa.int64()) for each in values]


def _quotient(first: Typed, last: Typed) -> Typed:
    dividend, divisor = _signed(first, last)
    divisor = pc.if_else(pc.equal(divisor, pa.scalar(0, pa.int64())), None, divisor)
    return long(pc.divide_checked(dividend, divisor))


def _remainder(first: Typed, last: Typed) -> Typed:
    dividend, divisor = _signed(first, last)
    divisor = pc.if_else(pc.equal(divisor, pa.scalar(0, pa.int64())), None, divisor)
    whole = pc.multiply_checked(pc.divide_checked(dividend, divisor), divisor)
    return long(pc.subtract_checked(dividend, whole))


_ARITHMETIC: Final[Mapping[str, Callable[[Typed, Typed], Typed]]] = MappingProxyType(
    {
        "+": partial(_arithmetic, pc.add),
        "-": partial(_arithmetic, pc.subtract),
        "*": partial(_arithmetic, pc.multiply),
        "DIV": _quotient,
        "%": _remainder,
    }
)
_LOGICAL: Final = MappingProxyType({"AND": pc.and_kleene, "OR": pc.or_kleene, "XOR": pc.xor})
_COMPARING: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "=": pc.equal,
        "<>": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
)


def _compared(operator: str, first: Typed, last: Typed) -> Values:
    if first.is_null or last.is_null:
        return pa.chunked_array([pa.nulls(len(first.values), pa.bool_())])
    families = {first.family, last.family}
    sides = [first.values, last.values]
    if families <= {"INTEGER", "DECIMAL"}:
        sides = [each.values.cast(pa.decimal256(*_digits(each))) for each in (first, last)]
    elif families == {"DATE", "DATETIME"} or len(families) > 1 or "TEXT" in families:
        raise NotComputableError("text, or values of two types, that are compared")
    return _COMPARING[operator](*sides)


def _absolute(value: Typed) -> Typed:
    if value.family == "INTEGER":
        is_unsigned = value.column.is_unsigned
        return long(
            _in_range(pc.abs(value.values), is_unsigned=is_unsigned), is_unsigned=is_unsigned
        )
    if value.family == "DECIMAL":
        return replace(value, values=pc.abs(value.values))
    raise NotComputableError("ABS of other than exact numbers")


def _extreme(apply: Callable[..., Values], *values: Typed) -> Typed:
    if any(each.family not in {"INTEGER", "DECIMAL"} or each.is_null for each in values):
        raise NotComputableError("GREATEST and LEAST of other than exact numbers")
    alike = _alike(values)
    found = apply(*(each.values for each in alike), skip_nulls=False)
    return replace(alike[0], values=found)


def _whole(apply: Callable[[Any], Any], value: Typed) -> Typed:
    """FLOOR and its like."""
    if value.family == "INTEGER":
        return value
    if value.family != "DECIMAL":
        raise NotComputableError("rounding of other than exact numbers")
    precision, scale = _digits(value)
    if precision - scale > _WHOLE_DIGITS_MAX:
        raise NotComputableError("rounding of numbers with so many digits")
    wide = value.values.cast(pa.decimal256(precision + 1, scale))
    return long(apply(wide).cast(pa.decimal256(20, 0)))


_WHOLE_DIGITS_MAX: Final = 17

# Text ---------------------------------------------------------------------------------------------


def _texts(*values: Typed) -> list[Values]:
    """Values as text."""
    found = []
    for each in values:
        if each.is_null:
            found.append(each.values.cast(pa.string()))
        elif each.family == "TEXT":
            found.append(each.values)
        elif each.family == "INTEGER" and not each.column.is_zerofill:
            found.append(each.values.cast(pa.string()))
        elif each.family == "DECIMAL" and not each.is_mixed:
            found.append(mapped(each.values, "{:f}".format, pa.string()))
        else:
            raise NotComputableError(f"{each.family} as text")
    return found


def _joined_charset(values: Sequence[Typed]) -> str:
    charsets = {each.column.charset or "" for each in values if each.family == "TEXT"} - {""}
    return charsets.pop() if len(charsets) == 1 else "utf8mb4" if charsets else ""


def _concat(*values: Typed) -> Typed:
    joined = pc.binary_join_element_wise(*_texts(*values), "", null_handling="emit_null")
    return text(joined, _joined_charset(values))


def _concat_ws(separator: Typed, *values: Typed) -> Typed:
    if not values:
        raise NotComputableError("CONCAT_WS")
    first, *others, between = _texts(*values, separator)
    # Arrow leaves rows out that have nothing to join.
    is_empty = reduce(pc.and_, [pc.is_null(each) for each in (first, *others)])
    first = pc.if_else(is_empty, pa.scalar("", pa.string()), first)
    joined = pc.binary_join_element_wise(
        first, *others, pc.fill_null(between, pa.scalar("")), null_handling="skip"
    )
    found = pc.if_else(pc.is_null(between), pa.scalar(None, pa.string()), joined)
    return text(found, _joined_charset([separator, *values]))


def _plain_case(apply: Callable[[Values], Values], value: Typed) -> Typed:
    """UPPER and LOWER of letters that all collations change alike."""
    (values,) = _texts(value)
    if not pc.all(pc.string_is_ascii(values)).as_py() and len(values.drop_null()):
        values = mapped(values, _OneByOne(apply), pa.string())
        return text(values, _joined_charset([value]))
    return text(apply(values), _joined_charset([value]))


@dataclass(frozen=True, slots=True)
class _OneByOne:
    apply: Callable[[Values], Values]

    def __call__(self, content: str) -> str:
        change = str.upper if self.apply is pc.ascii_upper else str.lower
        if any(letter > "\x7f" and letter not in _CASED for letter in content):
            raise NotToldError("a letter whose case the servers may change in another way")
        return "ß".join(map(change, content.split("ß")))


_CASED: Final = frozenset(
    chr(code)
    for first, last in ((0xC0, 0xD6), (0xD8, 0xDE), (0xE0, 0xF6), (0xF8, 0xFE))
    for code in range(first, last + 1)
) | frozenset("ß")
"""Letters beyond ASCII whose case all collations change as Unicode says."""


def _cut(*values: Typed) -> Typed:
    """SUBSTRING, and LEFT by its second argument alone."""
    content, *numbers = values
    (characters,) = _texts(content)
    start, length = (*map(_constant, numbers), None)[:2]
    if not start or (length is not None and length < 0):
        raise NotComputableError("SUBSTRING of such a place")
    begin = start - 1 if start > 0 else start
    stop = None if length is None else begin + length
    if begin < 0 and stop is not None and stop >= 0:
        stop = None
    found = pc.utf8_slice_codeunits(characters, begin, stop)
    if begin < 0:  # of a text that is shorter the servers take nothing
        is_short = pc.less(pc.utf8_length(characters), pa.scalar(-begin, pa.int32()))
        found = pc.if_else(is_short, pa.scalar("", pa.string()), found)
    return text(found, _joined_charset([content]))


def _left(content: Typed, count: Typed) -> Typed:
    (characters,) = _texts(content)
    return text(
        pc.utf8_slice_codeunits(characters, 0, max(_constant(count), 0)),
        _joined_charset([content]),
    )


def _right(content: Typed, count: Typed) -> Typed:
    (characters,) = _texts(content)
    number = max(_constant(count), 0)
    if not number:
        return text(pc.utf8_slice_codeunits(characters, 0, 0), _joined_charset([content]))
    return text(pc.utf8_slice_codeunits(characters, -number), _joined_charset([content]))


def _constant(value: Typed) -> int:
    if value.constant is None:
        raise NotComputableError("a place in a text that is no constant")
    return value.constant


def _length(content: Typed) -> Typed:
    if content.family != "TEXT" or content.column.charset not in _UTF8:
        raise NotComputableError("LENGTH of other text than UTF-8")
    return long(pc.binary_length(content.values))


def _characters(content: Typed) -> Typed:
    return long(pc.utf8_length(_texts(content)[0]))


def _trimmed(apply: Callable[..., Values], content: Typed) -> Typed:
    return text(apply(_texts(content)[0], " "), _joined_charset([content]))


def _digest(make: Callable[[bytes], Any], content: Typed) -> Typed:
    if content.family != "TEXT" or content.column.charset not in _UTF8:
        raise NotComputableError("a digest of other text than UTF-8")
    found = mapped(content.values, lambda each: make(each.encode()).hexdigest(), pa.string())
    return text(found, "utf8mb4")


# Dates --------------------------------------------------------------------------------------------


def _part(apply: Callable[[Values], Values], kinds: frozenset[str], value: Typed) -> Typed:
    if value.family not in kinds:
        raise NotComputableError(f"a part of a {value.family}")
    return long(apply(value.values))


_SUNDAY: Final = 7
_DATETIME: Final = frozenset({"DATETIME"})


def _date(value: Typed) -> Typed:
    if value.family not in _TEMPORAL:
        raise NotComputableError("DATE of other than dates")
    return Typed(TableColumn(name="", type_name="DATE"), value.values.cast(pa.date32(), safe=False))


def _difference(first: Typed, last: Typed) -> Typed:
    days = [_date(each).values.cast(pa.int32()).cast(pa.int64()) for each in (first, last)]
    return long(pc.subtract(*days))


FUNCTIONS: Final[Mapping[tuple[str, int], Callable[..., Typed]]] = MappingProxyType(
    {
        ("ABS", 1): _absolute,
        ("MOD", 2): _remainder,
        **{
            (name, 1): partial(_whole, apply)
            for name, apply in (
                ("FLOOR", pc.floor),
                ("CEIL", pc.ceil),
                ("CEILING", pc.ceil),
                ("ROUND", partial(pc.round, ndigits=0, round_mode="half_towards_infinity")),
            )
        },
        ("GREATEST", -1): partial(_extreme, pc.max_element_wise),
        ("LEAST", -1): partial(_extreme, pc.min_element_wise),
        ("CONCAT", -1): _concat,
        ("CONCAT_WS", -1): _concat_ws,
        **{(name, 1): partial(_plain_case, pc.ascii_upper) for name in ("UPPER", "UCASE")},
        **{(name, 1): partial(_plain_case, pc.ascii_lower) for name in ("LOWER", "LCASE")},
        **{(name, count): _cut for name in ("SUBSTRING", "SUBSTR", "MID") for count in (2, 3)},
        ("LEFT", 2): _left,
        ("RIGHT", 2): _right,
        **{(name, 1): _characters for name in ("CHAR_LENGTH", "CHARACTER_LENGTH")},
        **{(name, 1): _length for name in ("LENGTH", "OCTET_LENGTH")},
        ("TRIM", 1): partial(_trimmed, pc.utf8_trim),
        ("LTRIM", 1): partial(_trimmed, pc.utf8_ltrim),
        ("RTRIM", 1): partial(_trimmed, pc.utf8_rtrim),
        ("MD5", 1): partial(_digest, hashlib.md5),
        **{(name, 1): partial(_digest, hashlib.sha1) for name in ("SHA1", "SHA")},
        **{
            (name, 1): partial(_part, apply, _TEMPORAL)
            for name, apply in (
                ("YEAR", pc.year),
                ("MONTH", pc.month),
                ("DAY", pc.day),
                ("DAYOFMONTH", pc.day),
                ("QUARTER", pc.quarter),
                ("DAYOFYEAR", pc.day_of_year),
                ("WEEKDAY", partial(pc.day_of_week, count_from_zero=True, week_start=1)),
                ("DAYOFWEEK", partial(pc.day_of_week, count_from_zero=False, week_start=_SUNDAY)),
            )
        },
        **{
            (name, 1): partial(_part, apply, _DATETIME)
            for name, apply in (("HOUR", pc.hour), ("MINUTE", pc.minute), ("SECOND", pc.second))
        },
        ("DATE", 1): _date,
        ("DATEDIFF", 2): _difference,
    }
)
"""By name in capitals and number of arguments, -1 for any."""

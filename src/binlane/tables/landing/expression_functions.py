"""Typed columns of values, and the functions and operators of expressions over them.

A function is exact on MariaDB and MySQL alike, or refuses its arguments; `expression_values` says
what is exact.
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

from binlane.statements.sql.table_definitions import TableColumn
from binlane.tables.columnar.arrow_types import UNSIGNED_LONG, has_zone
from binlane.tables.landing.column_families import decimal_digits, family_of
from binlane.tables.landing.column_values import UnknownValuesError, Values, mapped

INTEGER_TYPE: Final = UNSIGNED_LONG
LONG: Final = ((-(1 << 63), (1 << 63) - 1), (0, (1 << 64) - 1))
_WIDE_DIGITS: Final = 76
_DECIMAL_DIGITS_MAX: Final = 38
_SCALE_MAX: Final = 30
UNKNOWN_CHARSET: Final = "unknown"
"""Character set of columns whose definitions name none, in a database of which nothing is known."""
_UTF8: Final = frozenset({"utf8mb4", "utf8mb3"})
_CHARS_MAX: Final = "65535"
_TEMPORAL: Final = frozenset({"DATE", "DATETIME"})
NUMERIC: Final = frozenset({"INTEGER", "DECIMAL", "DOUBLE"})


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
    return Typed(column, values if values.type == INTEGER_TYPE else values.cast(INTEGER_TYPE))


def text(values: Values, charset: str) -> Typed:
    """A text; the character set is empty of one that any can hold."""
    column = TableColumn(name="", type_name="VARCHAR", arguments=(_CHARS_MAX,), charset=charset)
    return Typed(column, values)


def double(values: Values) -> Typed:
    """Type values as DOUBLE."""
    finite = pc.all(pc.is_finite(values)).as_py()
    if finite is False:
        raise UnknownValuesError("a number is too large")
    return Typed(TableColumn(name="", type_name="DOUBLE"), values)


def decimal(values: Values) -> Typed:
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
        return decimal(values)
    if family == "DOUBLE" and pa.types.is_float64(kind) and len(column.arguments) < 2:
        return double(values)
    if family == "TEXT" and pa.types.is_string(kind):
        return text(values, column.charset or UNKNOWN_CHARSET)
    if family in _TEMPORAL and pa.types.is_temporal(kind) and not has_zone(kind):
        return Typed(column, values)
    raise NotComputableError(f"values of type {column.type_name}")


def alike(results: Sequence[Typed]) -> list[Typed]:
    """Results of one type."""
    own = [each for each in results if not each.is_null]
    if not own:
        return list(results)
    families = {each.family for each in own}
    if families == {"INTEGER"}:
        signs = {each.column.is_unsigned for each in own}
        if len(signs) > 1 or any(each.column.is_zerofill for each in own):
            raise NotComputableError("numbers with and without a sign")
        kind: Any = INTEGER_TYPE
        column = own[0].column
    elif families <= {"INTEGER", "DECIMAL"}:
        digits = [digits_of(each) for each in own]
        scale = max(scale for _, scale in digits)
        whole = max(precision - scale for precision, scale in digits)
        made = decimal(pa.chunked_array([pa.array([], decimal_type(whole + scale, scale))]))
        kind, column = made.values.type, made.column
    elif families == {"TEXT"}:
        kind = pa.string()
        column = text(own[0].values, joined_charset(own)).column
    elif len(families) == 1 and len({(e.column.type_name, e.column.arguments) for e in own}) == 1:
        kind, column = own[0].values.type, own[0].column
    else:
        raise NotComputableError("values of several types")
    is_mixed = any(each.is_mixed for each in own) or (
        bool(families & {"DECIMAL"}) and len({digits_of(each)[1] for each in own}) > 1
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


def digits_of(value: Typed) -> tuple[int, int]:
    """Give the precision and scale of exact numbers."""
    return (20, 0) if value.family == "INTEGER" else decimal_digits(value.column)


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Give the Arrow type of a DECIMAL."""
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
        wide = [each.values.cast(pa.decimal256(*digits_of(each))) for each in (first, last)]
        made = apply(*wide)
        if made.type.precision > _DECIMAL_DIGITS_MAX:
            raise NotComputableError("a DECIMAL of so many digits")
        return decimal(made.cast(pa.decimal128(made.type.precision, made.type.scale)))
    if families <= {"INTEGER", "DOUBLE"}:
        return double(apply(*(_as_double(each) for each in (first, last))))
    raise NotComputableError("arithmetic of other values than numbers")


def negative(zero: Typed, value: Typed) -> Typed:
    """Give the negative of exact numbers with a sign."""
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
    low, high = LONG[is_unsigned]
    found: Any = pc.min_max(values).as_py()
    if found["min"] is not None and (found["min"] < low or found["max"] > high):
        raise UnknownValuesError("a number is out of range")
    return values.cast(INTEGER_TYPE)


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


ARITHMETIC: Final[Mapping[str, Callable[[Typed, Typed], Typed]]] = MappingProxyType(
    {
        "+": partial(_arithmetic, pc.add),
        "-": partial(_arithmetic, pc.subtract),
        "*": partial(_arithmetic, pc.multiply),
        "DIV": _quotient,
        "%": _remainder,
    }
)
LOGICAL: Final = MappingProxyType({"AND": pc.and_kleene, "OR": pc.or_kleene, "XOR": pc.xor})
COMPARING: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "=": pc.equal,
        "<>": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }
)


def compared(operator: str, first: Typed, last: Typed) -> Values:
    """Compare the values of two columns by an operator."""
    if first.is_null or last.is_null:
        return pa.chunked_array([pa.nulls(len(first.values), pa.bool_())])
    families = {first.family, last.family}
    sides = [first.values, last.values]
    if families <= {"INTEGER", "DECIMAL"}:
        sides = [each.values.cast(pa.decimal256(*digits_of(each))) for each in (first, last)]
    elif families == {"DATE", "DATETIME"} or len(families) > 1 or "TEXT" in families:
        raise NotComputableError("text, or values of two types, that are compared")
    return COMPARING[operator](*sides)


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
    same = alike(values)
    found = apply(*(each.values for each in same), skip_nulls=False)
    return replace(same[0], values=found)


def _whole(apply: Callable[[Any], Any], value: Typed) -> Typed:
    """FLOOR and its like."""
    if value.family == "INTEGER":
        return value
    if value.family != "DECIMAL":
        raise NotComputableError("rounding of other than exact numbers")
    precision, scale = digits_of(value)
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


def joined_charset(values: Sequence[Typed]) -> str:
    """Give the character set of joined texts; empty if none of them has one."""
    charsets = {each.column.charset or "" for each in values if each.family == "TEXT"} - {""}
    return charsets.pop() if len(charsets) == 1 else "utf8mb4" if charsets else ""


def concat(*values: Typed) -> Typed:
    """Give the values of CONCAT."""
    joined = pc.binary_join_element_wise(*_texts(*values), "", null_handling="emit_null")
    return text(joined, joined_charset(values))


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
    return text(found, joined_charset([separator, *values]))


def _plain_case(apply: Callable[[Values], Values], value: Typed) -> Typed:
    """UPPER and LOWER of letters that all collations change alike."""
    (values,) = _texts(value)
    if not pc.all(pc.string_is_ascii(values)).as_py() and len(values.drop_null()):
        values = mapped(values, _OneByOne(apply), pa.string())
        return text(values, joined_charset([value]))
    return text(apply(values), joined_charset([value]))


@dataclass(frozen=True, slots=True)
class _OneByOne:
    apply: Callable[[Values], Values]

    def __call__(self, content: str) -> str:
        change = str.upper if self.apply is pc.ascii_upper else str.lower
        if any(letter > "\x7f" and letter not in _CASED for letter in content):
            raise UnknownValuesError("a letter whose case the servers may change in another way")
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
    return text(found, joined_charset([content]))


def _left(content: Typed, count: Typed) -> Typed:
    (characters,) = _texts(content)
    return text(
        pc.utf8_slice_codeunits(characters, 0, max(_constant(count), 0)),
        joined_charset([content]),
    )


def _right(content: Typed, count: Typed) -> Typed:
    (characters,) = _texts(content)
    number = max(_constant(count), 0)
    if not number:
        return text(pc.utf8_slice_codeunits(characters, 0, 0), joined_charset([content]))
    return text(pc.utf8_slice_codeunits(characters, -number), joined_charset([content]))


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
    return text(apply(_texts(content)[0], " "), joined_charset([content]))


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
        ("CONCAT", -1): concat,
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

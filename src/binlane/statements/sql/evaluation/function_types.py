"""Types of the servers' functions, by name; measured on MariaDB 10.11 and 11.8 and MySQL 9.7.

A fixed type is written as it is printed, then when it may be NULL: `!` never, `?` always, `*` if an
argument may. `@` stands for the connection's collation. Others are computed from a `TypedCall`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.statements.sql.evaluation.literal_values import string_content
from binlane.statements.sql.evaluation.operator_types import (
    TypeScope,
    Untyped,
    as_bytes,
    as_number,
    combined,
    decimal,
    integer,
    moved,
    real,
    together,
    with_default,
)
from binlane.statements.sql.evaluation.text_function_types import (
    char,
    encrypted,
    end_of_text,
    formatted,
    hexadecimal,
    joined,
    repeat,
    replaced,
    separated,
    substring,
    unhex,
)
from binlane.statements.sql.evaluation.typed_call import (
    AVERAGE_SCALE,
    EXACT,
    FRACTION_MAX,
    MYSQL_ROW_BIGINT,
    SUM_DIGITS,
    Typed,
    TypedCall,
)
from binlane.statements.sql.evaluation.types import (
    BYTES,
    DATE_LENGTHS,
    LONGEST,
    NO_DECIMALS,
    NUMBERS,
    TEMPORALS,
    Coercibility,
    Type,
    TypeKind,
    length_in,
    moment,
    text,
    text_length,
    without_default,
)
from binlane.statements.sql.servers import Fact, default_collation
from binlane.statements.sql.table_definitions import TableColumn
from binlane.statements.sql.tree.expressions import (
    Cast,
    Interval,
    Literal,
)


def call_type(call: TypedCall) -> Type | None:
    """The type of a call of a function that is built in; None of others.

    Raises:
        Untyped: If the type is not known.
    """
    name = call.node.upper_name
    typed = (_MARIADB if call.scope.is_mariadb else _MYSQL).get(name) or _SAME.get(name)
    if typed is None:
        return None
    if not isinstance(typed, str):
        return typed(call)
    has_types = typed.endswith("*") and bool(call.node.arguments)
    made = fixed(typed, call.types if has_types else (), call.scope)
    if name in _WITH_FRACTION and call.node.arguments:
        return replace(made, decimals=call.number(0))
    return made


# Choices ------------------------------------------------------------------------------------------


def _if(call: TypedCall) -> Type:
    condition, *types = call.types
    made = together(types, call.scope)
    if not call.scope.is_mariadb:
        return made
    known = [each for each in types if each.kind is not TypeKind.NULL]
    if made.kind is TypeKind.INTEGER and len(known) == 1:
        made = replace(made, length=known[0].length)
    return made.as_nullable() if condition.is_nullable else made


def _coalesce(call: TypedCall) -> Type:
    is_kept = call.node.upper_name == "IFNULL"
    made = together(call.types, call.scope, is_kept=is_kept)
    nullable = [each.is_nullable for each in call.types]
    if call.scope.has(Fact.ONE_VALUE_IS_ENOUGH):
        is_nullable = all(nullable)
    else:
        is_nullable = any(nullable) if call.node.upper_name == "COALESCE" else nullable[-1]
    return with_default(made.as_nullable(is_nullable), call.scope)


def _second_or_third(call: TypedCall) -> Type:
    """NVL2 of MariaDB: which one hangs on whether the first one is NULL."""
    condition, *types = call.types
    made = together(types, call.scope)
    return made.as_nullable(condition.is_nullable or made.is_nullable)


def _of_first(call: TypedCall) -> Type:
    """MAX and MIN."""
    made = call.first
    if made.is_literal and made.kind is TypeKind.INTEGER:
        made = replace(made, field_type="BIGINT")
    column = without_default(made.column)
    return replace(made, is_nullable=True, is_literal=False, column=column)


def of_one_row(made: Type, scope: TypeScope) -> Type:
    """A value of another row, or of a subquery's."""
    made = replace(made, is_nullable=True, column=without_default(made.column), is_literal=False)
    if made.kind is TypeKind.TEXT:
        return replace(made, column=None)
    if made.kind is TypeKind.INTEGER and not scope.is_mariadb and made.field_type != "BIT":
        is_wide = made.length >= MYSQL_ROW_BIGINT
        return replace(made, column=None, field_type="BIGINT" if is_wide else "INT")
    if made.column is not None:
        made = replace(made, column=replace(made.column, is_nullable=True))
    return made


def _extreme(call: TypedCall) -> Type:
    """GREATEST and LEAST: MariaDB compares moments as such, and texts beside numbers as numbers."""
    types = call.types
    kinds = {each.kind for each in types}
    if not call.scope.is_mariadb or len(kinds) == 1:
        return together(types, call.scope)
    moments = [each for each in types if each.kind in TEMPORALS]
    if moments:
        made = together(moments, call.scope)
        others = [_second_digits(each) for each in types]
        scale = 0 if made.kind is TypeKind.DATE else max(others)
        return replace(made, decimals=scale, is_nullable=True, column=None, field_type="")
    made = together(types, call.scope)
    if kinds.isdisjoint(NUMBERS) or kinds <= NUMBERS:
        return made
    scale = max(_digits(each) for each in types)
    length = 17 + scale if scale < NO_DECIMALS else 22
    return replace(real(), length=length, decimals=scale, is_nullable=made.is_nullable)


def _digits(value: Type) -> int:
    """Digits behind the point of a value as a number."""
    is_set = value.column is not None and value.column.type_name in {"ENUM", "SET"}
    is_bytes = value.is_literal and value.charset == "binary"
    if value.kind is TypeKind.TEXT:
        return 0 if is_set or is_bytes else NO_DECIMALS
    return value.decimals


def _second_digits(value: Type) -> int:
    """Digits of a second of a value as a moment."""
    return min(_digits(value), FRACTION_MAX)


# Rows ---------------------------------------------------------------------------------------------


def _total(digits: int, scale: int) -> Typed:
    """SUM and AVG: so many digits more, so many of them behind the point."""

    def typed(call: TypedCall) -> Type:
        made = as_number(call.first)
        if made.kind in EXACT:
            made = decimal(made.precision + digits, made.decimals + scale)
        else:
            made = real()
        return made.as_nullable()

    return typed


def _deviation(call: TypedCall) -> Type:
    """MariaDB's STDDEV."""
    made = call.first
    scale = made.decimals + AVERAGE_SCALE if made.kind in EXACT else NO_DECIMALS
    length = 22 + (scale if made.kind in EXACT else 0)
    return replace(real(), length=length, decimals=scale, is_nullable=True)


# Numbers ------------------------------------------------------------------------------------------


def _absolute(call: TypedCall) -> Type:
    made = call.first
    if made.kind is TypeKind.TEXT:
        return real(made)
    if made.kind is TypeKind.INTEGER:
        whole = integer(made.length, call.scope, is_unsigned=made.is_unsigned)
        return whole.as_nullable(made.is_nullable)
    return replace(made, column=None)


def _whole(call: TypedCall) -> Type:
    """CEIL and FLOOR."""
    value = call.first
    if value.kind is TypeKind.INTEGER:
        made = integer(value.length, call.scope, is_unsigned=value.is_unsigned)
    elif value.kind is TypeKind.DECIMAL:
        made = integer(value.integer_digits + 2, call.scope)
        made = replace(made, field_type="BIGINT" if made.length > 10 else "INT")
    else:
        return real(value)
    if not call.scope.is_mariadb:
        made = replace(made, field_type="BIGINT")
    return made.as_nullable(value.is_nullable)


def _rounded(call: TypedCall) -> Type:
    """ROUND and TRUNCATE."""
    value, is_mariadb = call.first, call.scope.is_mariadb
    scale = call.number(1) if len(call.node.arguments) > 1 else 0
    if value.kind is TypeKind.DECIMAL:
        scale = min(scale, value.decimals)
        extra = int(scale < value.decimals and call.node.upper_name == "ROUND")
        made = decimal(value.integer_digits + scale + extra, scale)
    elif value.kind is TypeKind.INTEGER and is_mariadb:
        if value.field_type == "BIT":
            raise Untyped("round()")
        return replace(value, column=without_default(value.column), is_literal=False)
    elif value.kind is TypeKind.INTEGER:
        made = replace(value, column=None, field_type="BIGINT", is_literal=False)
    elif is_mariadb and value.kind in TEMPORALS:
        raise Untyped("round() of a moment")
    elif is_mariadb:
        made = replace(real(), length=17 + scale, decimals=scale)
    else:
        made = real()
    return made.as_nullable(value.is_nullable)


# Dates --------------------------------------------------------------------------------------------


def _moved(call: TypedCall) -> Type:
    interval = call.argument(1)
    unit = interval.unit if isinstance(interval, Interval) else "DAY"
    return moved(call.first, unit.upper(), call.scope)


def cast_type(node: Cast, value: Type, scope: TypeScope) -> Type:
    """The type of CAST or CONVERT.

    Raises:
        Untyped: If the type is not known.
    """
    if node.type is None:
        return text(text_length(value), _charset(node.charset, scope), is_nullable=True)
    name = node.type.name
    sizes = [int(size) for size in node.type.arguments if size.isdecimal()]
    if name in {"SIGNED", "UNSIGNED", "INTEGER", "INT"}:
        is_unsigned = "UNSIGNED" in {name, *node.type.words}
        return _as_integer(value, scope, is_unsigned=is_unsigned).as_nullable(value.is_nullable)
    if name in _CAST_NUMBERS:
        return _as_inexact(name, sizes, value, scope)
    if name == "JSON":
        return Type(kind=TypeKind.JSON, is_nullable=True)
    if name == "YEAR" and not scope.is_mariadb:
        return Type(kind=TypeKind.INTEGER, length=4, field_type="YEAR", is_nullable=True)
    if name in DATE_LENGTHS:
        return moment(name, sizes[0] if sizes else 0)
    if name == "BINARY":
        made = as_bytes(value, scope)
        return replace(made, length=sizes[0]) if sizes else made
    if name in {"CHAR", "CHARACTER", "VARCHAR", "NCHAR"}:
        named = "utf8mb3" if name == "NCHAR" else node.type.charset
        of = _charset(named, scope) if named else scope.connection
        length = sizes[0] if sizes else length_in(value, of[0], scope.flavor)
        return text(length, of, is_nullable=True)
    raise Untyped(f"CAST AS {name}")


def _charset(name: str, scope: TypeScope) -> tuple[str, str]:
    """A character set that a text names, and its collation."""
    charset = {"utf8": "utf8mb3"}.get(name.lower(), name.lower())
    return charset, default_collation(charset, scope.flavor)


_CAST_NUMBERS: Final = frozenset(("DECIMAL", "DEC", "NUMERIC", "DOUBLE", "REAL", "FLOAT"))


def _as_inexact(name: str, sizes: Sequence[int], value: Type, scope: TypeScope) -> Type:
    if name in {"DECIMAL", "DEC", "NUMERIC"}:
        precision, scale = (*sizes, 0)[:2] if sizes else (10, 0)
        return decimal(precision, scale).as_nullable(value.is_nullable)
    made = replace(real(value), field_type="FLOAT" if name == "FLOAT" else "DOUBLE")
    return made.as_nullable() if scope.is_mariadb else made


def _as_integer(value: Type, scope: TypeScope, *, is_unsigned: bool) -> Type:
    if not scope.is_mariadb:
        return replace(integer(20, scope, is_unsigned=is_unsigned), field_type="BIGINT")
    is_whole = value.kind is TypeKind.INTEGER
    if is_unsigned:
        is_kept = is_whole and (value.is_unsigned or (value.is_literal and not value.is_negative))
        return integer(value.length if is_kept else 20, scope, is_unsigned=True)
    if value.kind is TypeKind.NULL:
        return integer(2, scope)
    if value.kind is TypeKind.REAL:
        return integer(20, scope)
    length = min(text_length(value), 21)
    return integer(max(length, 2) if is_whole else length, scope)


def _from_unix_time(call: TypedCall) -> Type:
    if len(call.node.arguments) > 1:
        return formatted(call)
    decimals = _second_digits(call.first)
    field_type = "TIMESTAMP" if call.scope.has(Fact.NOW_IS_TIMESTAMP) else ""
    return replace(moment("DATETIME", decimals), field_type=field_type)


def _as_time(call: TypedCall) -> Type:
    """TIME, SEC_TO_TIME, TIMEDIFF: a TIME with the digits of what it is made of."""
    return moment("TIME", max(map(_second_digits, call.types)))


def _read_moment(call: TypedCall) -> Type:
    """STR_TO_DATE: the letters of its format decide."""
    node = call.argument(1)
    if not isinstance(node, Literal):
        return moment("DATETIME", 6)
    written = string_content(call.scope.text.text_of(node), call.scope.text.dialect)
    letters = set(re.findall("%(.)", written))
    has_time = not letters.isdisjoint("fHIiSsTrhklp")
    has_date = not letters.isdisjoint("abcDdjMmUuVvWwXxYy")
    name = "DATE" if not has_time else "DATETIME" if has_date else "TIME"
    return replace(moment(name, 6 if "f" in letters else 0), length=19)


_PART_LENGTHS: Final = {
    "YEAR": 5,
    "YEAR_MONTH": 6,
    "QUARTER": 2,
    **dict.fromkeys(("MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"), 3),
    "MICROSECOND": 7,
    "DAY_SECOND": 14,
}


def _part(call: TypedCall) -> Type:
    """EXTRACT."""
    (unit,) = call.node.words or ("",)
    if unit not in _PART_LENGTHS:
        raise Untyped(f"extract({unit})")
    return integer(_PART_LENGTHS[unit], call.scope).as_nullable()


# By name ------------------------------------------------------------------------------------------


def _by_name(table: Mapping[str | Typed, str]) -> Mapping[str, str | Typed]:
    return MappingProxyType(
        {name: typed for typed, names in table.items() for name in names.split()}
    )


_SAME: Final = _by_name(
    {
        "datetime !": "LOCALTIME LOCALTIMESTAMP UTC_TIMESTAMP",
        "timestamp !": "NOW CURRENT_TIMESTAMP SYSDATE",
        "date !": "CURDATE CURRENT_DATE UTC_DATE",
        "time !": "CURTIME CURRENT_TIME UTC_TIME",
        "date ?": "DATE LAST_DAY MAKEDATE FROM_DAYS",
        "double !": "RAND",
        "double *": "DEGREES RADIANS",
        "double ?": "SQRT POW POWER EXP LN LOG LOG2 LOG10 SIN COS TAN COT ASIN ACOS ATAN ATAN2",
        "double(8,6) !": "PI",
        "varchar(64) utf8mb3 ?": "DATABASE SCHEMA CHARSET COLLATION",
        "bigint(21) !": "COUNT ROW_COUNT FOUND_ROWS",
        "bigint(21) unsigned !": "BIT_AND BIT_OR BIT_XOR LAST_INSERT_ID UUID_SHORT",
        "bigint(21) unsigned ?": "INET_ATON",
        "bigint(21) ?": "TIMESTAMPDIFF",
        "int(10) *": "LENGTH OCTET_LENGTH CHAR_LENGTH CHARACTER_LENGTH",
        "int(10) !": "COERCIBILITY",
        "int(10) ?": "UNCOMPRESSED_LENGTH",
        "int(10) unsigned *": "CRC32",
        "int(3) *": "ASCII FIND_IN_SET",
        "int(3) !": "FIELD",
        "int(11) *": "LOCATE INSTR POSITION",
        "int(2) *": "STRCMP",
        "int(2) !": "INTERVAL",
        "int(2) ?": "QUARTER",
        "int(3) ?": "MONTH DAY DAYOFMONTH HOUR MINUTE SECOND WEEK WEEKOFYEAR",
        "int(4) ?": "DAYOFYEAR",
        "int(6) ?": "YEARWEEK",
        "int(7) ?": "TO_DAYS",
        "int(8) ?": "DATEDIFF",
        "int(1) ?": "WEEKDAY DAYOFWEEK GET_LOCK RELEASE_LOCK IS_FREE_LOCK",
        "int(1) *": "IS_IPV4 IS_IPV6",
        "int(1) !": "ISNULL",
        "varchar(9) @ ?": "DAYNAME MONTHNAME",
        "varchar(31) @ ?": "INET_NTOA",
        "varchar(65) @ ?": "BIN OCT CONV",
        "varchar(32) @ ?": "MD5",
        "varchar(40) @ ?": "SHA SHA1",
        "varbinary(16) ?": "INET6_ATON",
        "longblob ?": "UNCOMPRESS",
        "longtext utf8mb4_bin ?": "JSON_PRETTY JSON_DETAILED",
        "time ?": "MAKETIME",
        _if: "IF",
        _coalesce: "IFNULL NVL COALESCE",
        _second_or_third: "NVL2",
        (lambda call: together([call.first], call.scope).as_nullable()): "NULLIF",
        _of_first: "MAX MIN",
        (lambda call: together([call.first], call.scope)): "ANY_VALUE",
        (
            lambda call: of_one_row(call.first, call.scope)
        ): "FIRST_VALUE LAST_VALUE NTH_VALUE LAG LEAD",
        _extreme: "GREATEST LEAST",
        (lambda call: call.at(1)): "NAME_CONST",
        _total(SUM_DIGITS, 0): "SUM",
        _total(AVERAGE_SCALE, AVERAGE_SCALE): "AVG",
        _absolute: "ABS",
        _whole: "CEIL CEILING FLOOR",
        _rounded: "ROUND TRUNCATE",
        (lambda call: combined(call.first, call.at(1), "%", call.scope)): "MOD",
        _moved: "DATE_ADD DATE_SUB ADDDATE SUBDATE",
        joined(lambda call: call.types): "CONCAT",
        joined(lambda call: call.types, separated): "CONCAT_WS",
        joined(lambda call: [call.first]): (
            "UPPER UCASE LOWER LCASE REVERSE LTRIM RTRIM SUBSTRING_INDEX"
        ),
        joined(lambda call: [call.at(-1)]): "TRIM",
        joined(lambda call: call.types[::3]): "INSERT",
        joined(lambda call: call.types[1:], lambda each: sum(each) + len(each) - 1): "MAKE_SET",
        (lambda call: call.text((call.number(1) or 256) // 4)): "SHA2",
        encrypted: "AES_ENCRYPT",
        formatted: "DATE_FORMAT TIME_FORMAT",
        _from_unix_time: "FROM_UNIXTIME",
        _read_moment: "STR_TO_DATE",
        _part: "EXTRACT",
        _as_time: "TIME TIMEDIFF SEC_TO_TIME",
        substring: "SUBSTRING SUBSTR MID",
        end_of_text: "LEFT RIGHT",
        repeat: "REPEAT",
        (lambda call: call.text(call.number(1, LONGEST), [call.first])): "LPAD RPAD",
        (lambda call: call.text(call.number(0, LONGEST))): "SPACE",
        replaced: "REPLACE",
        hexadecimal: "HEX",
        unhex: "UNHEX",
        char: "CHAR",
        (lambda call: call.text(2 * text_length(call.first) + 2, [call.first])): "QUOTE",
        joined(lambda call: call.types[1:], max): "ELT",
    }
)


_MARIADB: Final = _by_name(
    {
        "uuid ?": "UUID",
        "varchar(32) latin1 ?": "SYS_GUID",
        "varchar(384) utf8mb3 ?": "USER SESSION_USER SYSTEM_USER CURRENT_USER",
        "varchar(128) utf8mb3 ?": "CURRENT_ROLE",
        "int(10) unsigned !": "CONNECTION_ID",
        "bigint(17) ?": "UNIX_TIMESTAMP TIME_TO_SEC",
        "bigint(12) ?": "TO_SECONDS",
        "int(5) ?": "YEAR",
        "int(2) *": "SIGN BIT_COUNT",
        "int(1) !": "SLEEP BENCHMARK",
        "int(1) ?": "JSON_VALID",
        "int(7) *": "ORD",
        "int(7) ?": "MICROSECOND",
        "int(6) *": "PERIOD_ADD PERIOD_DIFF",
        "int(10) ?": "JSON_DEPTH JSON_LENGTH LENGTHB",
        "bigint(11) *": "BIT_LENGTH",
        "bigint(21) !": "ROW_NUMBER RANK DENSE_RANK",
        "varchar(12) utf8mb3 ?": "JSON_TYPE",
        joined(lambda call: [call.first], lambda each: min(2 * each[0], LONGEST)): "JSON_EXTRACT",
        _deviation: "STD STDDEV STDDEV_POP STDDEV_SAMP",
        (lambda call: call.text(1_048_576, call.types)): "GROUP_CONCAT",
        "mediumtext @ ?": "JSON_ARRAYAGG JSON_OBJECTAGG",
        "bigint(20) !": "NEXTVAL",
        "bigint(20) ?": "LASTVAL",
    }
)


_MYSQL: Final = _by_name(
    {
        "varchar(36) utf8mb3 ?": "UUID",
        "varchar(288) utf8mb3 ?": "USER SESSION_USER SYSTEM_USER CURRENT_USER",
        "bigint unsigned !": "CONNECTION_ID ROW_NUMBER RANK DENSE_RANK",
        "bigint *": "UNIX_TIMESTAMP SIGN BIT_COUNT ORD PERIOD_ADD PERIOD_DIFF",
        "bigint ?": "MICROSECOND TO_SECONDS JSON_VALID JSON_DEPTH JSON_LENGTH",
        "bigint !": "SLEEP",
        "year ?": "YEAR",
        "int ?": "BENCHMARK TIME_TO_SEC",
        "int *": "BIT_LENGTH",
        "varchar(17) utf8mb4_bin ?": "JSON_TYPE",
        "varbinary(16) ?": "UUID_TO_BIN",
        "varchar(36) @ ?": "BIN_TO_UUID",
        "double ?": "STD STDDEV STDDEV_POP STDDEV_SAMP",
        (lambda call: call.text(1024, call.types)): "GROUP_CONCAT",
        "json ?": "JSON_EXTRACT JSON_OBJECT JSON_ARRAY JSON_KEYS JSON_ARRAYAGG JSON_OBJECTAGG",
    }
)


_WITH_FRACTION: Final = frozenset(
    (
        *("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "SYSDATE", "UTC_TIMESTAMP"),
        *("CURTIME", "CURRENT_TIME", "UTC_TIME"),
    )
)
"""Functions whose argument is the number of digits of a second."""


_WRITTEN: Final = re.compile(
    r"(?P<type>\w+)(?:\((?P<length>\d+)(?:,(?P<scale>\d+))?\))?"
    r"(?P<words>(?: [a-z]\w*)*)(?P<connection> @)? (?P<mode>[!?*])\Z"
)


def fixed(written: str, arguments: Sequence[Type], scope: TypeScope) -> Type:
    """The type of a call, from how the table writes it."""
    found = _WRITTEN.match(written)
    assert found is not None, written
    mode = found["mode"]
    is_nullable = mode == "?" or (mode == "*" and any(each.is_nullable for each in arguments))
    name, length = found["type"].upper(), int(found["length"] or 0)
    words = found["words"].split()
    if name in {"INT", "BIGINT"}:
        made = Type(kind=TypeKind.INTEGER, length=length or 21, field_type=name)
        return replace(made, is_unsigned="unsigned" in words, is_nullable=is_nullable)
    if name == "DOUBLE":
        scale = int(found["scale"] or NO_DECIMALS)
        return replace(real(), length=length or 22, decimals=scale, is_nullable=is_nullable)
    if name == "TIMESTAMP":
        field_type = name if scope.has(Fact.NOW_IS_TIMESTAMP) else ""
        return replace(moment("DATETIME"), is_nullable=is_nullable, field_type=field_type)
    if name in DATE_LENGTHS:
        return moment(name).as_nullable(is_nullable)
    if name == "UUID" and scope.has(Fact.UUID_IS_NOT_NULL):
        is_nullable = False
    if name in {"UUID", "YEAR", "JSON"}:
        column = TableColumn(name="", type_name=name, is_nullable=is_nullable)
        kind = TypeKind.JSON if name == "JSON" else TypeKind.OTHER
        return Type(kind=kind, is_nullable=is_nullable, column=column)
    of = scope.connection
    if name in {"VARBINARY", "LONGBLOB"}:
        of = BYTES
    elif not found["connection"]:
        charset, _, rest = words[0].partition("_")
        of = charset, words[0] if rest else default_collation(charset, scope.flavor)
    if name == "MEDIUMTEXT":
        length = 1_048_576
    return text(length or LONGEST, of, coercibility=Coercibility.SYSTEM, is_nullable=is_nullable)

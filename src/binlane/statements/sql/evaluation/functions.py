"""Built-in functions: their names, and those whose value follows from their arguments alone.

Source of the names: item_create.cc and sql_yacc.yy of MariaDB 10.3 to 11.8 and MySQL 5.6 to 9.7;
all were called once.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from binlane.log.codec.types import Flavor
from binlane.statements.sql.evaluation.values import (
    BINARY,
    OPERATORS,
    UNKNOWN,
    Number,
    Text,
    Unknown,
    Value,
    as_integer,
    as_number,
    compared,
    equal,
    escaped,
    exact,
    plain_text,
    rounded,
    scale_of,
)
from binlane.statements.sql.facts import FunctionUse
from binlane.statements.sql.parser.types import QUALIFIERS
from binlane.statements.sql.servers import ANY, Dialect
from binlane.statements.sql.tree.expressions import Call

_GEOMETRY_PREFIX: Final = "ST_"
_OF_BOTH: Final = frozenset(
    """
ABS ACOS ADDDATE ADDTIME AES_DECRYPT AES_ENCRYPT ASCII ASIN ATAN ATAN2 AVG BENCHMARK BIN BIT_AND
BIT_COUNT BIT_LENGTH BIT_OR BIT_XOR CAST CEIL CEILING CHAR CHARACTER_LENGTH CHARSET CHAR_LENGTH
COALESCE COERCIBILITY COLLATION COMPRESS CONCAT CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COS
COT COUNT CRC32 CUME_DIST CURDATE CURRENT_DATE CURRENT_ROLE CURRENT_TIME CURRENT_TIMESTAMP
CURRENT_USER CURTIME DATABASE DATE DATEDIFF DATE_ADD DATE_FORMAT DATE_SUB DAY DAYNAME DAYOFMONTH
DAYOFWEEK DAYOFYEAR DEGREES DENSE_RANK DISTANCE ELT EXP EXPORT_SET EXTRACT EXTRACTVALUE FIELD
FIND_IN_SET FIRST_VALUE FLOOR FORMAT FORMAT_BYTES FORMAT_PICO_TIME FOUND_ROWS FROM_BASE64 FROM_DAYS
FROM_UNIXTIME GEOMETRYCOLLECTION GET_FORMAT GET_LOCK GREATEST GROUP_CONCAT HEX HOUR IF IFNULL INET4
INET6 INET6_ATON INET6_NTOA INET_ATON INET_NTOA INSERT INSTR INTERVAL ISNULL IS_FREE_LOCK IS_IPV4
IS_IPV4_COMPAT IS_IPV4_MAPPED IS_IPV6 IS_USED_LOCK JSON_ARRAY JSON_ARRAYAGG JSON_ARRAY_APPEND
JSON_ARRAY_INSERT JSON_ARRAY_INTERSECT JSON_CONTAINS JSON_CONTAINS_PATH JSON_DEPTH JSON_EXTRACT
JSON_INSERT JSON_KEYS JSON_KEY_VALUE JSON_LENGTH JSON_MERGE JSON_MERGE_PATCH JSON_MERGE_PRESERVE
JSON_OBJECT JSON_OBJECTAGG JSON_OBJECT_FILTER_KEYS JSON_OBJECT_TO_ARRAY JSON_OVERLAPS JSON_PRETTY
JSON_QUOTE JSON_REMOVE JSON_REPLACE JSON_SCHEMA_VALID JSON_SEARCH JSON_SET JSON_TABLE JSON_TYPE
JSON_UNQUOTE JSON_VALID JSON_VALUE KDF LAG LASTVAL LAST_DAY LAST_INSERT_ID LAST_VALUE LCASE LEAD
LEAST LEFT LENGTH LINESTRING LN LOAD_FILE LOCALTIME LOCALTIMESTAMP LOCATE LOG LOG10 LOG2 LOWER LPAD
LTRIM MAKEDATE MAKETIME MAKE_SET MASTER_POS_WAIT MAX MBRCONTAINS MBRDISJOINT MBREQUALS
MBRINTERSECTS MBROVERLAPS MBRTOUCHES MBRWITHIN MD5 MICROSECOND MID MIN MINUTE MOD MONTH MONTHNAME
MULTILINESTRING MULTIPOINT MULTIPOLYGON NAME_CONST NEXTVAL NOW NTH_VALUE NTILE NULLIF OCT
OCTET_LENGTH ORD PASSWORD PERCENT_RANK PERIOD_ADD PERIOD_DIFF PI POINT POLYGON POSITION POW POWER
QUARTER QUOTE RADIANS RAND RANDOM_BYTES RANK REGEXP_INSTR REGEXP_REPLACE REGEXP_SUBSTR
RELEASE_ALL_LOCKS RELEASE_LOCK REPEAT REPLACE REVERSE RIGHT ROUND ROW_COUNT ROW_NUMBER RPAD RTRIM
SCHEMA SCHEMAS SECOND SEC_TO_TIME SESSION_USER SETVAL SHA SHA1 SHA2 SIGN SIN SLEEP SOUNDEX SPACE
SQL_THREAD_WAIT_AFTER_GTIDS SQRT STD STDDEV STDDEV_POP STDDEV_SAMP STRCMP STR_TO_DATE ST_AREA
ST_ASBINARY ST_ASGEOJSON ST_ASTEXT ST_ASWKB ST_ASWKT ST_BUFFER ST_CENTROID ST_CONTAINS
ST_CONVEXHULL ST_CROSSES ST_DIFFERENCE ST_DIMENSION ST_DISJOINT ST_DISTANCE ST_DISTANCE_SPHERE
ST_ENDPOINT ST_ENVELOPE ST_EQUALS ST_EXTERIORRING ST_GEOMCOLLFROMTEXT ST_GEOMCOLLFROMWKB
ST_GEOMETRYCOLLECTIONFROMTEXT ST_GEOMETRYCOLLECTIONFROMWKB ST_GEOMETRYFROMTEXT ST_GEOMETRYFROMWKB
ST_GEOMETRYN ST_GEOMETRYTYPE ST_GEOMFROMGEOJSON ST_GEOMFROMTEXT ST_GEOMFROMWKB ST_INTERIORRINGN
ST_INTERSECTION ST_INTERSECTS ST_ISCLOSED ST_ISEMPTY ST_ISSIMPLE ST_LENGTH ST_LINEFROMTEXT
ST_LINEFROMWKB ST_LINESTRINGFROMTEXT ST_LINESTRINGFROMWKB ST_MLINEFROMTEXT ST_MLINEFROMWKB
ST_MPOINTFROMTEXT ST_MPOINTFROMWKB ST_MPOLYFROMTEXT ST_MPOLYFROMWKB ST_MULTILINESTRINGFROMTEXT
ST_MULTILINESTRINGFROMWKB ST_MULTIPOINTFROMTEXT ST_MULTIPOINTFROMWKB ST_MULTIPOLYGONFROMTEXT
ST_MULTIPOLYGONFROMWKB ST_NUMGEOMETRIES ST_NUMINTERIORRINGS ST_NUMPOINTS ST_OVERLAPS
ST_POINTFROMTEXT ST_POINTFROMWKB ST_POINTN ST_POLYFROMTEXT ST_POLYFROMWKB ST_POLYGONFROMTEXT
ST_POLYGONFROMWKB ST_SRID ST_STARTPOINT ST_SYMDIFFERENCE ST_TOUCHES ST_UNION ST_WITHIN ST_X ST_Y
SUBDATE SUBSTR SUBSTRING SUBSTRING_INDEX SUBTIME SUM SYSDATE SYSTEM_USER TAN TIME TIMEDIFF
TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC TO_BASE64 TO_DATE TO_DAYS TO_NUMBER
TO_SECONDS TRIM TRUNC TRUNCATE UCASE UNCOMPRESS UNCOMPRESSED_LENGTH UNHEX UNIX_TIMESTAMP UPDATEXML
UPPER USER UTC_DATE UTC_TIME UTC_TIMESTAMP UUID UUID_SHORT UUID_V4 UUID_V7 VALUE VALUES VARIANCE
VAR_POP VAR_SAMP VECTOR_DISTANCE VEC_DISTANCE VEC_DISTANCE_COSINE VEC_DISTANCE_EUCLIDEAN
VEC_FROMTEXT VEC_TOTEXT VERSION WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS WEEK WEEKDAY WEEKOFYEAR
WEIGHT_STRING XMLTYPE YEAR YEARWEEK
""".split()  # noqa: SIM905  # as a list each would need a line
)
"""Functions of both servers, or of other versions than those that were asked."""
_OF_MARIADB: Final = frozenset(
    """
ADD_MONTHS BINLOG_GTID_POS CHR COLUMN_ADD COLUMN_CHECK COLUMN_CREATE COLUMN_DELETE COLUMN_EXISTS
COLUMN_GET COLUMN_JSON COLUMN_LIST CONCAT_OPERATOR_ORACLE CRC32C DECODE DECODE_HISTOGRAM
DECODE_ORACLE DES_DECRYPT DES_ENCRYPT ENCODE ENCRYPT GLENGTH JSON_COMPACT JSON_DETAILED JSON_EQUALS
JSON_EXISTS JSON_LOOSE JSON_NORMALIZE JSON_QUERY LENGTHB LPAD_ORACLE LTRIM_ORACLE MASTER_GTID_WAIT
MBREQUAL MEDIAN NATURAL_SORT_KEY NVL NVL2 OLD_PASSWORD PERCENTILE_CONT PERCENTILE_DISC
REPLACE_ORACLE ROWNUM RPAD_ORACLE RTRIM_ORACLE SFORMAT ST_BOUNDARY ST_ISRING ST_POINTONSURFACE
ST_RELATE SUBSTR_ORACLE SYS_GUID TO_CHAR TRIM_ORACLE WSREP_LAST_SEEN_GTID WSREP_LAST_WRITTEN_GTID
WSREP_SYNC_WAIT_UPTO_GTID X Y
""".split()  # noqa: SIM905  # as a list each would need a line
)
"""MySQL 9.7.4 answers 1305."""
_OF_MYSQL: Final = frozenset(
    """
ANY_VALUE BIN_TO_UUID CAN_ACCESS_COLUMN CAN_ACCESS_DATABASE CAN_ACCESS_EVENT
CAN_ACCESS_RESOURCE_GROUP CAN_ACCESS_ROUTINE CAN_ACCESS_TABLE CAN_ACCESS_TRIGGER CAN_ACCESS_USER
CAN_ACCESS_VIEW CONVERT_CPU_ID_MASK CONVERT_INTERVAL_TO_USER_INTERVAL CURRENT_ROLE_IN
CURRENT_USER_IN ETAG FROM_VECTOR GEOMCOLLECTION GET_DD_COLUMN_PRIVILEGES GET_DD_CREATE_OPTIONS
GET_DD_INDEX_PRIVATE_DATA GET_DD_INDEX_SUB_PART_LENGTH GET_DD_PROPERTY_KEY_VALUE
GET_DD_SCHEMA_OPTIONS GET_DD_TABLESPACE_PRIVATE_DATA GET_JDV_PROPERTY_KEY_VALUE GROUPING
GTID_SUBSET GTID_SUBTRACT ICU_VERSION INTERNAL_AUTO_INCREMENT INTERNAL_AVG_ROW_LENGTH
INTERNAL_CHECKSUM INTERNAL_CHECK_TIME INTERNAL_DATA_FREE INTERNAL_DATA_LENGTH
INTERNAL_DD_CHAR_LENGTH INTERNAL_GET_COMMENT_OR_ERROR INTERNAL_GET_DD_COLUMN_EXTRA
INTERNAL_GET_ENABLED_ROLE_JSON INTERNAL_GET_HOSTNAME INTERNAL_GET_MANDATORY_ROLES_JSON
INTERNAL_GET_PARTITION_NODEGROUP INTERNAL_GET_USERNAME INTERNAL_GET_VIEW_WARNING_OR_ERROR
INTERNAL_INDEX_COLUMN_CARDINALITY INTERNAL_INDEX_LENGTH INTERNAL_IS_ENABLED_ROLE
INTERNAL_IS_MANDATORY_ROLE INTERNAL_KEYS_DISABLED INTERNAL_MAX_DATA_LENGTH
INTERNAL_TABLESPACE_AUTOEXTEND_SIZE INTERNAL_TABLESPACE_DATA_FREE INTERNAL_TABLESPACE_EXTENT_SIZE
INTERNAL_TABLESPACE_EXTRA INTERNAL_TABLESPACE_FREE_EXTENTS INTERNAL_TABLESPACE_ID
INTERNAL_TABLESPACE_INITIAL_SIZE INTERNAL_TABLESPACE_LOGFILE_GROUP_NAME
INTERNAL_TABLESPACE_LOGFILE_GROUP_NUMBER INTERNAL_TABLESPACE_MAXIMUM_SIZE
INTERNAL_TABLESPACE_ROW_FORMAT INTERNAL_TABLESPACE_STATUS INTERNAL_TABLESPACE_TOTAL_EXTENTS
INTERNAL_TABLESPACE_TYPE INTERNAL_TABLESPACE_VERSION INTERNAL_TABLE_ROWS INTERNAL_UPDATE_TIME
INTERNAL_USE_TERMINOLOGY_PREVIOUS IS_UUID IS_VISIBLE_DD_OBJECT JSON_DUALITY_OBJECT
JSON_SCHEMA_VALIDATION_REPORT JSON_STORAGE_FREE JSON_STORAGE_SIZE MBRCOVEREDBY MBRCOVERS MEMBER
PS_CURRENT_THREAD_ID PS_THREAD_ID REGEXP_LIKE REMOVE_DD_PROPERTY_KEY ROLES_GRAPHML SOURCE_POS_WAIT
STATEMENT_DIGEST STATEMENT_DIGEST_TEXT STRING_TO_VECTOR ST_BUFFER_STRATEGY ST_COLLECT
ST_FRECHETDISTANCE ST_GEOHASH ST_GEOMCOLLFROMTXT ST_HAUSDORFFDISTANCE ST_ISVALID ST_LATFROMGEOHASH
ST_LATITUDE ST_LINEINTERPOLATEPOINT ST_LINEINTERPOLATEPOINTS ST_LONGFROMGEOHASH ST_LONGITUDE
ST_MAKEENVELOPE ST_NUMINTERIORRING ST_POINTATDISTANCE ST_POINTFROMGEOHASH ST_SIMPLIFY ST_SWAPXY
ST_TRANSFORM ST_VALIDATE TABLESAMPLE TO_VECTOR UUID_TO_BIN VALIDATE_PASSWORD_STRENGTH VECTOR_DIM
VECTOR_TO_STRING VERSION_WITH_UPDATE WAIT_FOR_EXECUTED_GTID_SET
""".split()  # noqa: SIM905  # as a list each would need a line
)
"""MariaDB 10.11.19 and 11.8.6 answer 1305."""
_OF_MARIADB_11: Final = frozenset(
    """
JSON_ARRAY_INTERSECT JSON_KEY_VALUE JSON_OBJECT_FILTER_KEYS JSON_OBJECT_TO_ARRAY KDF UUID_V4
UUID_V7 VEC_DISTANCE VEC_DISTANCE_COSINE VEC_DISTANCE_EUCLIDEAN VEC_FROMTEXT VEC_TOTEXT
""".split()  # noqa: SIM905  # as a list each would need a line
)
"""Functions in `_OF_BOTH` to which MariaDB 10.11.19 answers 1305; 11.8.6 has them."""
_OF_MYSQL_5: Final = frozenset(
    ("DECODE", "DES_DECRYPT", "DES_ENCRYPT", "ENCODE", "ENCRYPT", "GLENGTH", "MBREQUAL", "X", "Y")
)
"""Functions in `_OF_MARIADB` that MySQL had, and 8.0 removed. Manual: MySQL 8.0, What Is New."""
_NAMES: Final = _OF_BOTH | _OF_MARIADB | _OF_MYSQL


def is_built_in(name: str, dialect: Dialect = ANY) -> bool:
    """True if a server may have a function of this name without anybody having made it.

    Args:
        name: Name in any case. Geometry functions had no prefix once: AREA was ST_AREA.
        dialect: Dialect of the server; for versions newer than those that were asked all names
            count.
    """
    upper = name.upper()
    if "%" in upper:  # `cursor%FOUND` of sql_mode ORACLE
        return True
    if dialect.flavor == "mariadb" and dialect.version < (12,):
        if upper in _OF_MYSQL or (upper in _OF_MARIADB_11 and dialect.version < (11,)):
            return False
    elif dialect.flavor == "mysql" and dialect.version < (10,) and upper in _OF_MARIADB:
        return dialect.version < (8,) and upper in _OF_MYSQL_5
    return upper in _NAMES or _GEOMETRY_PREFIX + upper in _NAMES


_REPEAT_MAX: Final = 1_000_000
"""Longer strings are not made."""
_SCALE_MAX: Final = 38
_UNSIGNED: Final = 0xFFFF_FFFF_FFFF_FFFF


class Context(NamedTuple):
    """Session values that functions depend on.

    Attributes:
        collation: Collation of strings made from values that are no strings.
        flavor: Flavor of the server whose rules are followed.
    """

    collation: str
    flavor: Flavor


Arguments: TypeAlias = Sequence[Value]
Function: TypeAlias = Callable[[Arguments, Context], Value]


def call_built_in(name: str, arguments: Arguments, context: Context) -> Value:
    """Give the value of a built-in function.

    Args:
        name: Name of the function in capitals.
        arguments: Values of the arguments in order.
        context: Values of the session that count.
    """
    function = FUNCTIONS.get(name)
    if function is None or any(value is UNKNOWN for value in arguments):
        return UNKNOWN
    if name not in _TAKE_NULL and any(value is None for value in arguments):
        return None
    if name not in _CHOOSE and any(_is_bytes(value) for value in arguments):
        arguments = [_as_bytes(value) for value in arguments]
    try:
        return function(arguments, context)
    except (IndexError, TypeError, ValueError, OverflowError, ArithmeticError):
        return UNKNOWN  # the server refuses such arguments, or gives them a meaning of its own


def _is_bytes(value: Value) -> bool:
    return isinstance(value, Text) and value.collation == BINARY


def _result(content: str, arguments: Arguments, context: Context) -> Text:
    """A string that is made of others: in the collation of the first that is one."""
    texts = [value for value in arguments if isinstance(value, Text)]
    return Text(content, texts[0].collation if texts else context.collation)


def _as_bytes(value: Value) -> Value:
    """A string as its bytes: beside one that is bytes."""
    if isinstance(value, Text) and value.collation != BINARY:
        return Text(value.encoded.decode("latin-1"), BINARY)
    return value


# Text ---------------------------------------------------------------------------------------------


def _of_text(make: Callable[[str], str]) -> Function:
    def apply(arguments: Arguments, context: Context) -> Value:
        (value,) = arguments
        text = plain_text(value)
        if _is_bytes(value) and make in {str.upper, str.lower}:
            return _result(text, arguments, context)
        made = make(text)
        if len(made) > len(text):  # letters that Python writes as several, as the servers do not
            return UNKNOWN
        return _result(made, arguments, context)

    return apply


def _concat(arguments: Arguments, context: Context) -> Value:
    return _result("".join(map(plain_text, arguments)), arguments, context)


def _concat_ws(arguments: Arguments, context: Context) -> Value:
    separator, *parts = arguments
    if separator is None:
        return None
    texts = [plain_text(part) for part in parts if part is not None]
    return _result(plain_text(separator).join(texts), arguments, context)


def _repeat(arguments: Arguments, context: Context) -> Value:
    text, count = plain_text(arguments[0]), as_integer(arguments[1])
    if len(text) * count > _REPEAT_MAX:
        return UNKNOWN
    return _result(text * max(count, 0), arguments[:1], context)


def _left(arguments: Arguments, context: Context) -> Value:
    count = max(as_integer(arguments[1]), 0)
    return _result(plain_text(arguments[0])[:count], arguments[:1], context)


def _right(arguments: Arguments, context: Context) -> Value:
    text, count = plain_text(arguments[0]), max(as_integer(arguments[1]), 0)
    return _result(text[max(len(text) - count, 0) :], arguments[:1], context)


def _substring(arguments: Arguments, context: Context) -> Value:
    text, first = plain_text(arguments[0]), as_integer(arguments[1])
    length = as_integer(arguments[2]) if len(arguments) > 2 else len(text)
    start = first - 1 if first > 0 else len(text) + first
    is_outside = length <= 0 or start < 0 or first == 0
    return _result("" if is_outside else text[start : start + length], arguments[:1], context)


def _substring_index(arguments: Arguments, context: Context) -> Value:
    text, separator, count = (*map(plain_text, arguments[:2]), as_integer(arguments[2]))
    if not separator or not count:
        return _result("", arguments[:1], context)
    parts = text.split(separator)
    kept = parts[:count] if count > 0 else parts[count:]
    return _result(separator.join(kept), arguments[:2], context)


def _replace(arguments: Arguments, context: Context) -> Value:
    text, old, new = map(plain_text, arguments)
    return _result(text.replace(old, new) if old else text, arguments, context)


def _insert(arguments: Arguments, context: Context) -> Value:
    text, start, length = plain_text(arguments[0]), *map(as_integer, arguments[1:3])
    if not 0 < start <= len(text):
        return _result(text, arguments[:1], context)
    end = start - 1 + length if 0 <= length <= len(text) - start + 1 else len(text)
    new = plain_text(arguments[3])
    return _result(text[: start - 1] + new + text[end:], (arguments[0], arguments[3]), context)


def _padded(*, is_left: bool) -> Function:
    def apply(arguments: Arguments, context: Context) -> Value:
        text, length = plain_text(arguments[0]), as_integer(arguments[1])
        filler = plain_text(arguments[2]) if len(arguments) > 2 else " "
        if length > _REPEAT_MAX or length < 0 or not filler:
            return UNKNOWN
        padding = (filler * length)[: max(length - len(text), 0)]
        made = padding + text if is_left else text + padding
        return _result(made[:length], (arguments[0], *arguments[2:]), context)

    return apply


def _quote(arguments: Arguments, context: Context) -> Value:
    (value,) = arguments
    if value is None:
        return Text("NULL", context.collation)
    text = escaped(plain_text(value)).replace('\\"', '"').replace("\\n", "\n").replace("\\r", "\r")
    return _result(f"'{text}'", arguments, context)


def _hex(arguments: Arguments, context: Context) -> Value:
    (value,) = arguments
    if isinstance(value, Text):
        return Text(value.encoded.hex().upper(), context.collation)
    number = as_integer(value)
    if isinstance(value, float) and context.flavor is Flavor.MARIADB:
        number = int(rounded(exact(value), 0))
    return Text(f"{number & _UNSIGNED:X}", context.collation)


def _unhex(arguments: Arguments, _: Context) -> Value:
    text = plain_text(arguments[0])
    return Text(bytes.fromhex(text.zfill(len(text) + len(text) % 2)).decode("latin-1"), BINARY)


def _digest(make: Callable[[bytes], hashlib._Hash]) -> Function:
    def apply(arguments: Arguments, context: Context) -> Value:
        (value,) = arguments
        text = value if isinstance(value, Text) else Text(plain_text(value), context.collation)
        return Text(make(text.encoded).hexdigest(), context.collation)

    return apply


def _character(arguments: Arguments, _: Context) -> Value:
    codes = [as_integer(code) & 0xFFFF_FFFF for code in arguments if code is not None]
    made = b"".join(code.to_bytes(max((code.bit_length() + 7) // 8, 1), "big") for code in codes)
    return Text(made.decode("latin-1"), BINARY)


def _element(arguments: Arguments, context: Context) -> Value:
    index = as_integer(arguments[0]) if arguments[0] is not None else 0
    value = arguments[index] if 0 < index < len(arguments) else None
    return value if value is None else _result(plain_text(value), [value], context)


# Text and numbers ---------------------------------------------------------------------------------


def _length(arguments: Arguments, _: Context) -> Value:
    (value,) = arguments
    return len(value.encoded) if isinstance(value, Text) else len(plain_text(value))


def _first_byte(arguments: Arguments, context: Context) -> Value:
    (value,) = arguments
    text = value if isinstance(value, Text) else Text(plain_text(value), context.collation)
    return text.encoded[0] if text.content else 0


def _locate(arguments: Arguments, _: Context) -> Value:
    needle, text = (plain_text(value).casefold() for value in arguments[:2])
    start = as_integer(arguments[2]) if len(arguments) > 2 else 1
    found = text.find(needle, start - 1) + 1 if start > 0 else 0
    return found if needle.isascii() and text.isascii() else UNKNOWN


def _field(arguments: Arguments, _: Context) -> Value:
    if arguments[0] is None:
        return 0
    values = list(arguments)
    if not all(isinstance(each, Text) for each in values):
        values = [as_number(each) for each in values]
    results = [0 if each is None else equal(values[0], each) for each in values[1:]]
    if UNKNOWN in results:
        return UNKNOWN
    return results.index(1) + 1 if 1 in results else 0


def _compare(arguments: Arguments, context: Context) -> Value:
    left, right = (_result(plain_text(each), [each], context) for each in arguments)
    return compared(left, right)


# Numbers ------------------------------------------------------------------------------------------


def _of_number(apply: Callable[[Number], Value]) -> Function:
    def of_value(arguments: Arguments, _: Context) -> Value:
        number = as_number(arguments[0])
        return number if isinstance(number, Unknown | None) else apply(number)

    return of_value


def _whole(direction: str) -> Function:
    def apply(number: Number) -> Value:
        whole = exact(number).to_integral_value(direction)
        return float(whole) if isinstance(number, float) else int(whole)

    return _of_number(apply)


def _round(arguments: Arguments, context: Context) -> Value:
    number = as_number(arguments[0])
    digits = as_integer(arguments[1]) if len(arguments) > 1 else 0
    if digits < 0 or isinstance(number, Unknown | int | None):
        return number if digits >= 0 else UNKNOWN
    if isinstance(number, Decimal):
        scale = digits if context.flavor is Flavor.MARIADB else min(digits, scale_of(number))
        return rounded(number, min(scale, _SCALE_MAX))
    if digits and context.flavor is Flavor.MARIADB:
        return UNKNOWN  # it is shown with all these digits
    return float(round(number, digits))


def _power(arguments: Arguments, _: Context) -> Value:
    base, exponent = map(as_number, arguments)
    if isinstance(base, Unknown | None) or isinstance(exponent, Unknown | None):
        return UNKNOWN
    return math.pow(float(base), float(exponent))


def _extreme(wanted: int) -> Function:
    def apply(arguments: Arguments, _: Context) -> Value:
        if len({type(value) for value in arguments}) > 1:
            return UNKNOWN  # the result has a type of all of them
        best = arguments[0]
        for value in arguments[1:]:
            order = compared(value, best)
            if isinstance(order, Unknown):
                return UNKNOWN
            best = value if order == wanted else best
        return best

    return apply


# NULL ---------------------------------------------------------------------------------------------


def _null_if(arguments: Arguments, _: Context) -> Value:
    first, last = arguments
    holds = equal(first, last)
    if isinstance(holds, Unknown):
        return UNKNOWN
    return None if holds else first


FUNCTIONS: Final[Mapping[str, Function]] = MappingProxyType(
    {
        "ABS": _of_number(lambda number: number if number >= 0 else -number),
        "ASCII": _first_byte,
        **dict.fromkeys(("CEIL", "CEILING"), _whole(ROUND_CEILING)),
        "CHAR": _character,
        **dict.fromkeys(
            ("CHAR_LENGTH", "CHARACTER_LENGTH"), lambda each, _: len(plain_text(each[0]))
        ),
        "CONCAT": _concat,
        "CONCAT_WS": _concat_ws,
        "ELT": _element,
        "FIELD": _field,
        "FLOOR": _whole(ROUND_FLOOR),
        "GREATEST": _extreme(1),
        "HEX": _hex,
        "INSERT": _insert,
        "INSTR": lambda each, context: _locate((each[1], each[0]), context),
        "ISNULL": lambda each, _: int(each[0] is None),
        "LEAST": _extreme(-1),
        "LEFT": _left,
        **dict.fromkeys(("LENGTH", "OCTET_LENGTH"), _length),
        **dict.fromkeys(("LOCATE", "POSITION"), _locate),
        **dict.fromkeys(("LOWER", "LCASE"), _of_text(str.lower)),
        "LPAD": _padded(is_left=True),
        "LTRIM": _of_text(lambda text: text.lstrip(" ")),
        "MD5": _digest(hashlib.md5),
        "MOD": lambda each, context: OPERATORS["%"](each[0], each[1], context.flavor),
        "NAME_CONST": lambda each, _: each[1],
        "NULLIF": _null_if,
        **dict.fromkeys(("POW", "POWER"), _power),
        "QUOTE": _quote,
        "REPEAT": _repeat,
        "REPLACE": _replace,
        "REVERSE": _of_text(lambda text: text[::-1]),
        "RIGHT": _right,
        "ROUND": _round,
        "RPAD": _padded(is_left=False),
        "RTRIM": _of_text(lambda text: text.rstrip(" ")),
        **dict.fromkeys(("SHA", "SHA1"), _digest(hashlib.sha1)),
        "SIGN": _of_number(lambda number: (number > 0) - (number < 0)),
        "SPACE": lambda each, context: _repeat((Text(" ", context.collation), *each), context),
        "STRCMP": _compare,
        **dict.fromkeys(("SUBSTRING", "SUBSTR", "MID"), _substring),
        "SUBSTRING_INDEX": _substring_index,
        "TRIM": _of_text(lambda text: text.strip(" ")),
        "UNHEX": _unhex,
        **dict.fromkeys(("UPPER", "UCASE"), _of_text(str.upper)),
    }
)
"""Built-in functions by name in capitals."""
_TAKE_NULL: Final = frozenset(
    ("CHAR", "CONCAT_WS", "ELT", "FIELD", "ISNULL", "NAME_CONST", "NULLIF", "QUOTE")
)
"""NULL is an argument like others."""
_CHOOSE: Final = frozenset(("ELT", "NAME_CONST", "NULLIF"))
"""Functions that give one of their arguments as it is."""


SYS: Final = "sys"


# Databases whose functions come with the server.
SYS_FUNCTIONS: Final = frozenset(
    [
        "extract_schema_from_file_name",
        "extract_table_from_file_name",
        "format_bytes",
        "format_path",
        "format_statement",
        "format_time",
        "list_add",
        "list_drop",
        "ps_is_account_enabled",
        "ps_is_consumer_enabled",
        "ps_is_instrument_default_enabled",
        "ps_is_instrument_default_timed",
        "ps_is_thread_instrumented",
        "ps_thread_account",
        "ps_thread_id",
        "ps_thread_stack",
        "ps_thread_trx_info",
        "quote_identifier",
        "sys_get_config",
        "version_major",
        "version_minor",
        "version_patch",
    ]
)
"""Functions of `sys`, the one database that comes with functions, in MariaDB 10.11 and MySQL 9.7."""


def is_made(use: FunctionUse | Call, dialect: Dialect) -> bool:
    """True if a function must have been created by a user: it did not come with the server."""
    if use.database is not None:
        database = use.database.lower()
        if database == SYS:
            return use.name.lower() not in SYS_FUNCTIONS
        return not (dialect.may_be_mariadb and database in QUALIFIERS)
    return not is_built_in(use.name, dialect)

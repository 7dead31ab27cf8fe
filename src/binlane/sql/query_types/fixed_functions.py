"""Types of the servers' functions, as far as they do not depend on more than their arguments.

Measured on MariaDB 10.11 and MySQL 9.7. A type is written as it is printed, then when it may be
NULL: `!` never, `?` always, `*` if an argument may. `@` stands for the connection's collation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from binlane.codec.types import Flavor
from binlane.sql.collations import default_collation
from binlane.sql.query_types.arithmetic import real
from binlane.sql.query_types.scope import Scope
from binlane.sql.query_types.values import (
    DATE_LENGTHS,
    NO_DECIMALS,
    Coercibility,
    Value,
    ValueKind,
)
from binlane.sql.table_definitions import TableColumn

_WRITTEN: Final = re.compile(
    r"(?P<type>\w+)(?:\((?P<length>\d+)(?:,(?P<scale>\d+))?\))?"
    r"(?P<words>(?: [a-z]\w*)*)(?P<connection> @)? (?P<mode>[!?*])\Z"
)
_LONGEST: Final = 4_294_967_295
_SAME: Final = {
    "NOW": "datetime !",
    "CURRENT_TIMESTAMP": "datetime !",
    "LOCALTIME": "datetime !",
    "LOCALTIMESTAMP": "datetime !",
    "SYSDATE": "datetime !",
    "UTC_TIMESTAMP": "datetime !",
    "CURDATE": "date !",
    "CURRENT_DATE": "date !",
    "UTC_DATE": "date !",
    "CURTIME": "time !",
    "CURRENT_TIME": "time !",
    "UTC_TIME": "time !",
    "RAND": "double *",
    "SQRT": "double ?",
    "POW": "double *",
    "POWER": "double *",
    "EXP": "double *",
    "LN": "double ?",
    "LOG": "double ?",
    "SIN": "double *",
    "COS": "double *",
    "PI": "double(8,6) !",
    "DATABASE": "varchar(64) utf8mb3 ?",
    "SCHEMA": "varchar(64) utf8mb3 ?",
    "CHARSET": "varchar(64) utf8mb3 ?",
    "COLLATION": "varchar(64) utf8mb3 ?",
    "COUNT": "bigint(21) !",
    "BIT_AND": "bigint(21) unsigned !",
    "BIT_OR": "bigint(21) unsigned !",
    "BIT_XOR": "bigint(21) unsigned !",
    "LAST_INSERT_ID": "bigint(21) unsigned !",
    "ROW_COUNT": "bigint(21) !",
    "FOUND_ROWS": "bigint(21) !",
    "UUID_SHORT": "bigint(21) unsigned !",
    "LENGTH": "int(10) *",
    "OCTET_LENGTH": "int(10) *",
    "CHAR_LENGTH": "int(10) *",
    "CHARACTER_LENGTH": "int(10) *",
    "ASCII": "int(3) *",
    "LOCATE": "int(11) *",
    "INSTR": "int(11) *",
    "POSITION": "int(11) *",
    "MD5": "varchar(32) @ ?",
    "SHA1": "varchar(40) @ ?",
    "SHA": "varchar(40) @ ?",
    "DATE": "date ?",
    "LAST_DAY": "date ?",
    "MAKEDATE": "date ?",
    "FROM_DAYS": "date ?",
    "MONTH": "int(3) ?",
    "DAY": "int(3) ?",
    "DAYOFMONTH": "int(3) ?",
    "DAYOFYEAR": "int(4) ?",
    "HOUR": "int(3) ?",
    "MINUTE": "int(3) ?",
    "SECOND": "int(3) ?",
    "WEEK": "int(3) ?",
    "QUARTER": "int(2) ?",
    "DAYNAME": "varchar(9) @ ?",
    "MONTHNAME": "varchar(9) @ ?",
    "DATEDIFF": "int(8) ?",
    "TIMESTAMPDIFF": "bigint(21) ?",
    "TO_DAYS": "int(7) ?",
    "WEEKDAY": "int(1) ?",
    "INET_ATON": "bigint(21) unsigned ?",
    "INET_NTOA": "varchar(31) @ ?",
    "CRC32": "int(10) unsigned *",
    "BIN": "varchar(65) @ ?",
    "OCT": "varchar(65) @ ?",
    "CONV": "varchar(65) @ ?",
    "FIELD": "int(3) !",
    "FIND_IN_SET": "int(3) *",
    "STRCMP": "int(2) *",
    "GET_LOCK": "int(1) ?",
    "RELEASE_LOCK": "int(1) ?",
    "IS_FREE_LOCK": "int(1) ?",
    "ISNULL": "int(1) !",
    "INTERVAL": "int(2) !",
    "FROM_UNIXTIME": "datetime ?",
    "TIME": "time ?",
    "TIMEDIFF": "time ?",
    "SEC_TO_TIME": "time ?",
    "MAKETIME": "time ?",
}
_MARIADB: Final = {
    "UUID": "uuid ?",
    "SYS_GUID": "varchar(32) @ ?",
    "USER": "varchar(384) utf8mb3 ?",
    "CURRENT_ROLE": "varchar(384) utf8mb3 ?",
    "CONNECTION_ID": "int(10) unsigned !",
    "UNIX_TIMESTAMP": "bigint(17) ?",
    "YEAR": "int(5) ?",
    "SIGN": "int(2) *",
    "SLEEP": "int(1) !",
    "BENCHMARK": "int(1) !",
    "ORD": "int(7) *",
    "BIT_COUNT": "int(2) *",
    "PERIOD_ADD": "int(6) *",
    "BIT_LENGTH": "bigint(11) *",
    "TIME_TO_SEC": "bigint(17) ?",
    "ROW_NUMBER": "bigint(21) !",
    "RANK": "bigint(21) !",
    "DENSE_RANK": "bigint(21) !",
    "JSON_EXTRACT": "longtext utf8mb4_bin ?",
    "NEXTVAL": "bigint(20) !",
    "LASTVAL": "bigint(20) ?",
}
_MYSQL: Final = {
    "UUID": "varchar(36) utf8mb3 ?",
    "USER": "varchar(288) utf8mb3 ?",
    "CONNECTION_ID": "bigint unsigned !",
    "UNIX_TIMESTAMP": "bigint *",
    "YEAR": "year ?",
    "SIGN": "bigint *",
    "SLEEP": "bigint !",
    "BENCHMARK": "int ?",
    "ORD": "bigint *",
    "BIT_COUNT": "bigint *",
    "PERIOD_ADD": "bigint *",
    "BIT_LENGTH": "int *",
    "TIME_TO_SEC": "int ?",
    "ROW_NUMBER": "bigint unsigned !",
    "RANK": "bigint unsigned !",
    "DENSE_RANK": "bigint unsigned !",
    "JSON_EXTRACT": "json ?",
    "JSON_OBJECT": "json ?",
    "JSON_ARRAY": "json ?",
}
_ALIASES: Final = ("SESSION_USER", "SYSTEM_USER", "CURRENT_USER")
FIXED_TYPES: Final[Mapping[Flavor, Mapping[str, str]]] = MappingProxyType(
    {
        Flavor.MARIADB: MappingProxyType(
            {**_SAME, **_MARIADB, **dict.fromkeys(_ALIASES, _MARIADB["USER"])}
        ),
        Flavor.MYSQL: MappingProxyType(
            {**_SAME, **_MYSQL, **dict.fromkeys(_ALIASES, _MYSQL["USER"])}
        ),
    }
)
"""By name in capitals."""
WITH_FRACTION: Final = frozenset(
    {
        *("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "SYSDATE", "UTC_TIMESTAMP"),
        *("CURTIME", "CURRENT_TIME", "UTC_TIME"),
    }
)
"""Whose argument is the number of digits of a second."""


def fixed(written: str, arguments: Sequence[Value], scope: Scope) -> Value:
    """The type of a call, from how the table writes it."""
    found = _WRITTEN.match(written)
    assert found is not None, written
    mode = found["mode"]
    is_nullable = mode == "?" or (mode == "*" and any(each.is_nullable for each in arguments))
    name, length = found["type"].upper(), int(found["length"] or 0)
    words = found["words"].split()
    if name in {"INT", "BIGINT"}:
        return Value(
            kind=ValueKind.INTEGER,
            length=length or 21,
            is_unsigned="unsigned" in words,
            is_nullable=is_nullable,
            integer_type=name,
        )
    if name == "DOUBLE":
        scale = int(found["scale"] or NO_DECIMALS)
        return replace(real(), length=length or 22, decimals=scale, is_nullable=is_nullable)
    if name in DATE_LENGTHS:
        return Value(kind=ValueKind[name], length=DATE_LENGTHS[name], is_nullable=is_nullable)
    if name in {"UUID", "YEAR", "JSON"}:
        column = TableColumn(name="", type_name=name, is_nullable=is_nullable)
        kind = ValueKind.JSON if name == "JSON" else ValueKind.OTHER
        return Value(kind=kind, is_nullable=is_nullable, column=column)
    charset, collation = scope.connection
    if not found["connection"]:
        charset, _, rest = words[0].partition("_")
        collation = words[0] if rest else default_collation(charset, scope.flavor)
    return Value(
        kind=ValueKind.TEXT,
        length=length or _LONGEST,
        is_nullable=is_nullable,
        charset=charset,
        collation=collation,
        coercibility=Coercibility.SYSTEM,
    )

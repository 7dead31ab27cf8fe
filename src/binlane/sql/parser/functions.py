"""Functions that are words of the grammar: with another number of arguments they are no syntax.

Of all others the number of arguments is no matter of syntax. Values only.

Source: measured on MariaDB 10.11, 11.8 and MySQL 9.7 (`SELECT word(a, a, …)`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from binlane.sql.dialect import Dialect
from binlane.sql.parser.reserved import words_of

_BOTH: Final = {
    "ASCII": (1, 1),
    "CHARSET": (1, 1),
    "DATE": (1, 1),
    "DAY": (1, 1),
    "HOUR": (1, 1),
    "IF": (3, 3),
    "INSERT": (4, 4),
    "LEFT": (2, 2),
    "MINUTE": (1, 1),
    "MOD": (2, 2),
    "MONTH": (1, 1),
    "REPEAT": (2, 2),
    "REPLACE": (3, 3),
    "RIGHT": (2, 2),
    "SECOND": (1, 1),
    "TIME": (1, 1),
    "TIMESTAMP": (1, 2),
    "TRUNCATE": (2, 2),
    "USER": (0, 0),
    "YEAR": (1, 1),
    "RANK": (0, 0),
    "DENSE_RANK": (0, 0),
    "PERCENT_RANK": (0, 0),
    "CUME_DIST": (0, 0),
    "ROW_NUMBER": (0, 0),
    "NTILE": (1, 1),
    "NTH_VALUE": (2, 2),
    "FIRST_VALUE": (1, 1),
}
_MYSQL: Final = {
    "COALESCE": (1, 99),
    "COLLATION": (1, 1),
    "DATABASE": (0, 0),
    "FORMAT": (2, 3),
    "GROUPING": (1, 99),
    "LINESTRING": (1, 99),
    "LOG": (1, 2),
    "MICROSECOND": (1, 1),
    "MULTILINESTRING": (1, 99),
    "MULTIPOINT": (1, 99),
    "MULTIPOLYGON": (1, 99),
    "POINT": (2, 2),
    "POLYGON": (1, 99),
    "QUARTER": (1, 1),
    "REVERSE": (1, 1),
    "ROW_COUNT": (0, 0),
    "SCHEMA": (0, 0),
    "WEEK": (1, 2),
    "LAG": (1, 3),
    "LEAD": (1, 3),
    "LAST_VALUE": (1, 1),
}
_MARIADB: Final = {
    "COLUMN_DELETE": (2, 99),
    "LASTVAL": (1, 1),
    "NEXTVAL": (1, 1),
    "PASSWORD": (1, 1),
    "ROWNUM": (0, 0),
    "LAG": (1, 2),
    "LEAD": (1, 2),
    "LAST_VALUE": (1, 99),
    "SETVAL": (2, 4),
}


@cache
def argument_counts(dialect: Dialect) -> Mapping[str, tuple[int, int]]:
    """The least and the largest number of arguments of functions that are words."""
    if dialect.flavor == "mysql":
        return _BOTH | _MYSQL
    if dialect.flavor == "mariadb":
        return _BOTH | _MARIADB
    return _BOTH


NEVER_CALLED: Final = words_of("""
    ANY BACKUP BEGIN BINLOG BIT BOOL BOOLEAN BYTE CACHE CHECKSUM CLOSE CODE COMMENT COMMIT
    COMPRESSED DATETIME DEALLOCATE DO END ENUM EXCLUDE EXECUTE FIXED FLUSH FOLLOWING FOLLOWS GLOBAL
    HANDLER HELP HOST INSTALL JSON LANGUAGE LOCAL MEDIUM NAMES NATIONAL NCHAR NO NUMBER NVARCHAR
    OPEN OPTIONS OTHERS OWNER PARSER PORT PRECEDES PRECEDING PREPARE REMOVE REPAIR REPLICA REPLICAS
    RESET RESTORE ROLE ROLLBACK SAVEPOINT SECURITY SERIAL SERVER SESSION SHUTDOWN SIGNED SLAVE
    SOCKET SOME SONAME SOUNDS START STOP TEXT TIES UNBOUNDED UNICODE UNINSTALL UPGRADE WRAPPER XA
    """)
"""Words that may be names, but none of functions."""
NEVER_CALLED_IN_MYSQL: Final = words_of("PASSWORD CONTAINS VALUE")

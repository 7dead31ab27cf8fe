"""Words of the grammar that are no names without quotes, or functions with a number of arguments.

With another number of arguments these functions are no syntax; of all other functions that number is no matter
of syntax.

Source: measured on MariaDB 10.11, 11.8 and MySQL 9.7 (`SELECT 1 AS word`, `SELECT word(a, a, …)`); versions in
between from the servers' manuals.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from binlane.statements.sql.servers import Dialect

if TYPE_CHECKING:
    pass


def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


_BOTH: Final = words_of("""
    ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY
    CALL CASCADE CASE CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT CONTINUE
    CONVERT CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASES
    DAY_HOUR DAY_MICROSECOND DAY_MINUTE DAY_SECOND DEC DECIMAL DECLARE DEFAULT DELAYED DELETE DESC
    DESCRIBE DETERMINISTIC DISTINCT DISTINCTROW DIV DOUBLE DROP DUAL EACH ELSE ELSEIF ENCLOSED
    ESCAPED EXISTS EXIT EXPLAIN FALSE FETCH FLOAT FLOAT4 FLOAT8 FOR FORCE FOREIGN FROM FULLTEXT
    GRANT GROUP HAVING HIGH_PRIORITY HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN INDEX
    INFILE INNER INOUT INSENSITIVE INSERT INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERVAL INTO IS
    ITERATE JOIN KEY KEYS KILL LEADING LEAVE LEFT LIKE LIMIT LINEAR LINES LOAD LOCALTIME
    LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT LOOP LOW_PRIORITY MATCH MAXVALUE MEDIUMBLOB MEDIUMINT
    MEDIUMTEXT MIDDLEINT MINUTE_MICROSECOND MINUTE_SECOND MOD MODIFIES NATURAL NOT
    NO_WRITE_TO_BINLOG NULL NUMERIC ON OPTIMIZE OPTIONALLY OR ORDER OUT OUTER OUTFILE PARTITION
    PRECISION PRIMARY PROCEDURE PURGE RANGE READ READS READ_WRITE REAL REFERENCES REGEXP RELEASE
    RENAME REPEAT REPLACE REQUIRE RESIGNAL RESTRICT RETURN REVOKE RIGHT RLIKE SCHEMAS
    SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL
    SQLEXCEPTION SQLSTATE SQLWARNING SQL_BIG_RESULT SQL_CALC_FOUND_ROWS SQL_SMALL_RESULT SSL
    STARTING STRAIGHT_JOIN TABLE TERMINATED THEN TINYBLOB TINYINT TINYTEXT TO TRAILING TRIGGER TRUE
    UNDO UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES
    VARBINARY VARCHAR VARCHARACTER VARYING WHEN WHERE WHILE WITH WRITE XOR YEAR_MONTH ZEROFILL
    """)
_MYSQL: Final = {
    (5, 7, 0): """DATABASE GENERATED GET IO_AFTER_GTIDS IO_BEFORE_GTIDS OPTIMIZER_COSTS OPTION
        SCHEMA STORED VIRTUAL""",
    (8, 0, 0): """CUBE CUME_DIST DENSE_RANK EMPTY EXCEPT FIRST_VALUE FUNCTION GROUPING GROUPS
        JSON_TABLE LAG LAST_VALUE LATERAL LEAD NTH_VALUE NTILE OF OVER PERCENT_RANK RANK RECURSIVE
        ROW ROWS ROW_NUMBER SYSTEM WINDOW""",
    (8, 0, 31): "INTERSECT",
    (8, 4, 0): "QUALIFY TABLESAMPLE",
    (9, 2, 0): "LIBRARY",
    (9, 4, 0): "EXTERNAL",
}
_MYSQL_UNTIL: Final = {
    (8, 4, 0): "MASTER_BIND MASTER_SSL_VERIFY_SERVER_CERT",
}
_MARIADB: Final = {
    (10, 0, 0): """CURRENT_ROLE DELETE_DOMAIN_ID DO_DOMAIN_IDS EXCEPT IGNORE_DOMAIN_IDS INTERSECT
        MASTER_DEMOTE_TO_REPLICA MASTER_DEMOTE_TO_SLAVE OFFSET OVER PAGE_CHECKSUM PARSE_VCOL_EXPR
        PORTION RECURSIVE REF_SYSTEM_ID RETURNING ROWS STATS_AUTO_RECALC STATS_PERSISTENT
        STATS_SAMPLE_PAGES""",
    (10, 7, 0): "ROW_NUMBER",
    (11, 7, 0): "SQL_AFTER_GTIDS SQL_BEFORE_GTIDS VECTOR",
}
_MARIADB_UNTIL: Final = {(11, 0, 0): "MASTER_SSL_VERIFY_SERVER_CERT"}
CHARSETS: Final = words_of("""
    _ARMSCII8 _BIG5 _BINARY _CP1250 _CP1251 _CP1256 _CP1257 _CP850 _CP852 _CP866 _CP932 _DEC8
    _EUCJPMS _EUCKR _GB18030 _GB2312 _GBK _GEOSTD8 _GREEK _HEBREW _HP8 _KEYBCS2 _KOI8R _KOI8U
    _LATIN1 _LATIN2 _LATIN5 _LATIN7 _MACCE _MACROMAN _SJIS _SWE7 _TIS620 _UCS2 _UJIS _UTF16 _UTF16LE
    _UTF32 _UTF8 _UTF8MB3 _UTF8MB4
    """)
"""Words that introduce a string of a character set."""
_Since = dict[tuple[int, int, int], str]


def _of(version: tuple[int, int, int], since: _Since, until: _Since) -> frozenset[str]:
    found = set(_BOTH | CHARSETS)
    for first, words in since.items():
        if version >= first:
            found.update(words.split())
    for last, words in until.items():
        if version < last:
            found.update(words.split())
    return frozenset(found)


@cache
def reserved_words(dialect: Dialect) -> frozenset[str]:
    """The words that a server reserves; without a flavor those that all do."""
    if dialect.flavor == "mysql":
        return _of(dialect.version, _MYSQL, _MYSQL_UNTIL)
    if dialect.flavor == "mariadb":
        return _of(dialect.version, _MARIADB, _MARIADB_UNTIL)
    return _BOTH | CHARSETS


_CLAUSES: Final = words_of(
    "EXCEPT INTERSECT OFFSET RETURNING WINDOW QUALIFY LATERAL TABLESAMPLE OF OVER PORTION"
)


@cache
def no_aliases(dialect: Dialect) -> frozenset[str]:
    """The words that are no alias without AS; without a flavor also those that begin clauses."""
    words = reserved_words(dialect)
    return words if dialect.flavor else words | _CLAUSES


_FUNCTIONS: Final = {
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
_MYSQL_FUNCTIONS: Final = {
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
_MARIADB_FUNCTIONS: Final = {
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
        return _FUNCTIONS | _MYSQL_FUNCTIONS
    if dialect.flavor == "mariadb":
        return _FUNCTIONS | _MARIADB_FUNCTIONS
    return _FUNCTIONS


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

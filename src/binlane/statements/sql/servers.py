"""The servers, as those who read their SQL know them: dialects, versions, character sets.

Differences between versions are data, each with the source that tells it. A fact is a row of
`SINCE`: the first version of either server that has it, and where older series got it as a fix, their
first releases that have it. A default is a list of values, each with
its first version. What no row tells is the same in all versions that are known.
Sources: *measured* on servers of that version; *manual*, *notes* or *worklog* of the makers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from binlane.log.codec.types import Flavor

_ANSI_QUOTES: Final = 0x4
_PIPES_AS_CONCAT: Final = 0x2
_IGNORE_SPACE: Final = 0x8
_NO_BACKSLASH_ESCAPES: Final = 0x100000
_HIGH_NOT_PRECEDENCE: Final = 0x20000000
_ORACLE: Final = 0x200
_ANSI_MODES: Final = frozenset(
    ("ANSI", "ANSI_QUOTES", "ORACLE", "DB2", "MAXDB", "MSSQL", "POSTGRESQL")
)
"""Modes in which double quotes hold names; all but ANSI_QUOTES stand for others as well."""
_COMBINATIONS: Final = _ANSI_MODES - {"ANSI_QUOTES"}


class Dialect(NamedTuple):
    """Rules by which a text is read.

    Attributes:
        flavor: `mariadb` or `mysql`, whose grammar alone holds; empty for texts that either of them
            takes, as for a log whose server nobody has named.
        version: Three numbers of the server's version, for executable comments and the grammar;
            unused without a flavor.
        ansi_quotes: sql_mode ANSI_QUOTES: `"a"` is a name.
        no_backslash_escapes: sql_mode NO_BACKSLASH_ESCAPES: a backslash is a plain character.
        is_oracle: True for sql_mode ORACLE of MariaDB.
        pipes_as_concat: sql_mode PIPES_AS_CONCAT: `||` joins strings.
        ignore_space: sql_mode IGNORE_SPACE: a blank may stand before a call's parenthesis.
        high_not_precedence: sql_mode HIGH_NOT_PRECEDENCE: NOT binds as `!` does.
        lower_case_names: `lower_case_table_names` is not 0: names of databases, tables and their
            aliases are read in lower case.
        charset: The client's character set where that is read in another way than UTF-8
            (`lexis.lexed_as`), else empty.
    """

    flavor: str = ""
    version: tuple[int, int, int] = (99, 0, 0)
    ansi_quotes: bool = False
    no_backslash_escapes: bool = False
    is_oracle: bool = False
    pipes_as_concat: bool = False
    ignore_space: bool = False
    high_not_precedence: bool = False
    lower_case_names: bool = False
    charset: str = ""

    @property
    def may_be_mariadb(self) -> bool:
        """MariaDB's grammar holds, alone or beside MySQL's."""
        return self.flavor != "mysql"

    @property
    def may_be_mysql(self) -> bool:
        """MySQL's grammar holds, alone or beside MariaDB's."""
        return self.flavor != "mariadb"

    @property
    def calls_packages(self) -> bool:
        """True if `a.b()` may be routine b of a package a of the default database."""
        return self.is_oracle or (self.flavor == "mariadb" and self.version >= (11, 4))

    def has_mariadb(self, *version: int) -> bool:
        """True if syntax that MariaDB understands from a version on may stand here."""
        return not self.flavor or (self.flavor == "mariadb" and self.version >= version)

    def has_mysql(self, *version: int) -> bool:
        """True if syntax that MySQL understands from a version on may stand here."""
        return not self.flavor or (self.flavor == "mysql" and self.version >= version)

    def with_mode(self, sql_mode: int, charset: str = "") -> Self:
        """Give the same server's dialect, in a session of another sql_mode and character set.

        Args:
            sql_mode: Bits of the sql_mode, as a QUERY event has them.
            charset: Character set of its client, as in the attribute `charset`.
        """
        return self._replace(
            ansi_quotes=bool(sql_mode & _ANSI_QUOTES),
            no_backslash_escapes=bool(sql_mode & _NO_BACKSLASH_ESCAPES),
            pipes_as_concat=bool(sql_mode & _PIPES_AS_CONCAT),
            ignore_space=bool(sql_mode & _IGNORE_SPACE),
            high_not_precedence=bool(sql_mode & _HIGH_NOT_PRECEDENCE),
            is_oracle=self.may_be_mariadb and bool(sql_mode & _ORACLE),
            charset=charset,
        )

    def in_modes(self, sql_mode: str) -> Self:
        """Give a dialect as `with_mode` does, with the modes by name.

        Args:
            sql_mode: Modes as the server tells them, or as SET has them: names in capitals, with
                commas, or bits.
        """
        if sql_mode.isdigit():
            return self.with_mode(int(sql_mode))
        modes = frozenset(sql_mode.split(","))
        is_combined = not _COMBINATIONS.isdisjoint(modes)
        return self._replace(
            ansi_quotes=not _ANSI_MODES.isdisjoint(modes),
            no_backslash_escapes="NO_BACKSLASH_ESCAPES" in modes,
            pipes_as_concat=is_combined or "PIPES_AS_CONCAT" in modes,
            ignore_space=is_combined or "IGNORE_SPACE" in modes,
            high_not_precedence="HIGH_NOT_PRECEDENCE" in modes,
            is_oracle=self.may_be_mariadb and "ORACLE" in modes,
        )


ANY: Final = Dialect()
"""Dialect of a server nobody has named, in a session without modes."""


class LoggingMode(Enum):
    """Rule by which a binlog chooses the logging format of a statement (`FORMAT` in CREATE BINLOG)."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    STATEMENT = "STATEMENT"
    ROW = "ROW"
    MIXED = "MIXED"


class RowImage(Enum):
    """Columns that row images hold: values of `binlog_row_image`, and `ROW_IMAGE` of a binlog."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    MINIMAL = "MINIMAL"
    NOBLOB = "NOBLOB"
    FULL = "FULL"
    FULL_NODUP = "FULL_NODUP"
    """All columns before, and after it only what changed."""


_BY_SIZE: Final = (RowImage.FULL, RowImage.FULL_NODUP, RowImage.NOBLOB, RowImage.MINIMAL)


def smaller(*images: RowImage) -> RowImage:
    """The image that leaves out most."""
    return max(images, key=_BY_SIZE.index)


def larger(*images: RowImage) -> RowImage:
    """The image that leaves out least."""
    return min(images, key=_BY_SIZE.index)


class LoggingFormat(Enum):
    """Form in which the effects of one statement are logged."""

    __hash__ = object.__hash__  # members are unique; Enum's own is no C function

    STATEMENT = "statement"
    ROW = "row"


Version = tuple[int, int, int]
SERIES: Final[Mapping[str, tuple[tuple[int, int], ...]]] = MappingProxyType(
    {
        "mariadb": (
            *((10, minor) for minor in range(12)),
            *((11, minor) for minor in range(9)),
            *((12, minor) for minor in range(4)),
        ),
        "mysql": (
            *((5, minor) for minor in range(5, 8)),
            *((8, minor) for minor in range(5)),
            *((9, minor) for minor in range(8)),
        ),
    }
)
"""Release series that exist: major and minor number, oldest first."""
ASSUMED: Final[Mapping[str, Version]] = MappingProxyType(
    {"mariadb": (10, 11, 19), "mysql": (9, 7, 4)}
)
"""Versions where none is named: those on which most was measured."""
NEWEST: Final = 99
"""Last number of a version that stands for the newest release of its series."""
_NEVER: Final = (1000, 0, 0)


class Fact(Enum):
    """Behavior that some versions of a server have and others do not."""

    SERVER_FOREIGN_KEYS = auto()
    """Foreign keys are the server's own work, not InnoDB's: it opens the tables of foreign keys,
    fires triggers of children and logs the rows that foreign keys change. Measured: MySQL 9.7;
    notes: 9.6."""
    ATOMIC_DDL = auto()
    """DDL of InnoDB tables is committed together with its log. Manual: MySQL 8.0."""
    DICTIONARY_TABLES = auto()
    """Many tables of information_schema are views of InnoDB tables, which a statement opens. Manual:
    MySQL 8.0; which ones was measured on 9.7."""
    FILLS_AS_IT_CREATES = auto()
    """CREATE … SELECT logs the table and its rows in one group. Manual: MySQL 8.0.21."""
    SOURCES_AND_REPLICAS = auto()
    """Messages speak of sources and replicas. Notes: MySQL 8.0.26."""
    UNSAFE_IN_XA = auto()
    """A write inside of an XA transaction is unsafe. Notes: MySQL 8.0.2."""
    SKIP_LOCKED = auto()
    """SKIP LOCKED is known, and unsafe. Manual: MariaDB 10.6, MySQL 8.0.1."""
    ROWS_OF_TEMPORARY_TABLES = auto()
    """Under MIXED, statements with temporary tables go as rows, their creation is not logged, and
    binlog_format cannot be changed while some are open. Notes: MySQL 8.0.4."""
    TEMPORARY_IN_TRANSACTION = auto()
    """GTID consistency allows CREATE and DROP TEMPORARY TABLE in a transaction that logs rows.
    Notes: MySQL 8.0.13."""
    UNICODE_COLLATION_14 = auto()
    """Unicode character sets have uca1400_ai_ci for their default collation. Worklog: MDEV-25829,
    MariaDB 11.5; measured: 11.8."""
    UUID_IS_NOT_NULL = auto()
    """uuid() is of type UUID and never NULL: CREATE … SELECT makes it NOT NULL. Measured: MariaDB
    11.8, not 10.11."""
    LOGS_ALL_OPTIONS = auto()
    """check_constraint_checks is logged with statements, and SHOW BINLOG EVENTS shows what an option
    is, as foreign_key_checks=0; before, it showed foreign_key_checks=1 there, and some without their
    values. Measured: MariaDB 10.11.18, 10.11.19 and 11.8.9; not 10.5.23, 10.11.5, 11.4.5 and 11.8.6.
    Those between are taken by their dates: the releases of May 2026, which follow 11.8.6, have it."""
    ANNOTATES_FIRST_CACHE = auto()
    """Annotate_rows stands in the cache that is written first, which is that of non-transactional
    tables; before, it stood in that of the first table. Measured: MariaDB 10.11.18, 10.11.19, 11.8.6
    and 11.8.9; not 10.5.23, 10.11.5 and 11.4.5. Those between are taken by their dates: the
    releases that follow 11.4.5 have it."""
    ASKS_EMPTY_ENGINES = auto()
    """UPDATE or DELETE of one BLACKHOLE table by a whole unique key is known to find no row before it
    runs, and not logged. Measured: MariaDB 10.11; not 11.8, nor MySQL."""
    COLUMN_REFERENCES = auto()
    """REFERENCES behind a column makes a foreign key; before, it is read and forgotten. Manual:
    MariaDB 10.5, MySQL 9.0."""
    XA_DETACHES = auto()
    """XA transactions that are prepared are any session's to end, and use no temporary tables:
    xa_detach_on_prepare is there, and ON. Manual: MySQL 8.0.29."""
    CHECK_CONSTRAINTS = auto()
    """CHECK is a constraint; before, it is read and forgotten. Manual: MariaDB 10.2, MySQL 8.0.16."""
    UNIQUE_PARENT_KEYS = auto()
    """A foreign key refers to a whole unique key. Manual: MySQL 8.4,
    restrict_fk_on_non_standard_key."""
    NOW_IS_TIMESTAMP = auto()
    """NOW(), CURRENT_TIMESTAMP, SYSDATE() and FROM_UNIXTIME() are of type TIMESTAMP, not DATETIME.
    Worklog: MDEV-15751, MariaDB 11.7; measured: 11.8, not 10.11."""
    UPDATES_AS_QUERIES = auto()
    """UPDATE and DELETE of one table are optimized as queries are: one that holds no rows, as its
    engine counts them, is known to be empty, and IN (SELECT …) of UPDATE may become a join.
    Worklog: MDEV-28883, MariaDB 11.1; measured: 11.8, not 10.11."""
    LOADS_IN_SINGLE_SPACES = auto()
    """LOAD DATA is logged with one blank behind OPTIONALLY, not two. Measured: MariaDB 11.8, not
    10.11."""
    PREPARES_BODIES_ANEW = auto()
    """Statements of routines are prepared anew when one of their tables changed. Worklog: MDEV-5816,
    MariaDB 11.2; measured: MariaDB 11.8, not 10.11, and MySQL 9.7."""
    OPENS_SEQUENCES_FOR_DEFAULT = auto()
    """UPDATE with the word DEFAULT opens the sequences that are in the defaults of its table; before,
    the server crashed where it needed one. Measured as ANNOTATES_FIRST_CACHE."""
    ONE_VALUE_IS_ENOUGH = auto()
    """IFNULL and COALESCE are NOT NULL where one of their values is; before, IFNULL where its second
    one is, and COALESCE where all are. Measured as ANNOTATES_FIRST_CACHE."""
    LITERALS_HAVE_SIGNS = auto()
    """An integer that IF, CASE, COALESCE, GREATEST and UNION make of literals has a digit more, for
    its sign. Measured as ANNOTATES_FIRST_CACHE."""
    ENDS_ROWS_UNDER_LOCKS = auto()
    """The rows of a statement under LOCK TABLES end with it, also where it locked tables by foreign
    keys, triggers or functions; before, and in MySQL, they stay open for those of the next one with
    autocommit=0. Measured: MariaDB 10.11.19 and 11.8.9, not 11.4.5; dated as ANNOTATES_FIRST_CACHE."""
    PASSWORD_IS_UNSAFE = auto()
    """PASSWORD() counts among the unsafe functions. Manual: MySQL before 8.0.11, which has none."""
    FULL_NODUP = auto()
    """binlog_row_image takes FULL_NODUP. Manual: MariaDB 11.4; measured: 11.4.5 and 11.8, not 10.11
    nor MySQL 9.7."""


SINCE: Final[Mapping[Fact, tuple[Version, Version]]] = MappingProxyType(
    {
        Fact.SERVER_FOREIGN_KEYS: (_NEVER, (9, 6, 0)),
        Fact.ATOMIC_DDL: (_NEVER, (8, 0, 0)),
        Fact.DICTIONARY_TABLES: (_NEVER, (8, 0, 0)),
        Fact.FILLS_AS_IT_CREATES: ((0, 0, 0), (8, 0, 21)),
        Fact.SOURCES_AND_REPLICAS: (_NEVER, (8, 0, 26)),
        Fact.UNSAFE_IN_XA: (_NEVER, (8, 0, 2)),
        Fact.COLUMN_REFERENCES: ((10, 5, 0), (9, 0, 0)),
        Fact.XA_DETACHES: (_NEVER, (8, 0, 29)),
        Fact.CHECK_CONSTRAINTS: ((10, 2, 1), (8, 0, 16)),
        Fact.UNIQUE_PARENT_KEYS: (_NEVER, (8, 4, 0)),
        Fact.SKIP_LOCKED: ((10, 6, 0), (8, 0, 1)),
        Fact.ROWS_OF_TEMPORARY_TABLES: (_NEVER, (8, 0, 4)),
        Fact.TEMPORARY_IN_TRANSACTION: (_NEVER, (8, 0, 13)),
        Fact.UNICODE_COLLATION_14: ((11, 5, 0), _NEVER),
        Fact.UUID_IS_NOT_NULL: ((11, 6, 0), _NEVER),
        Fact.LOGS_ALL_OPTIONS: ((12, 3, 2), _NEVER),
        Fact.ANNOTATES_FIRST_CACHE: ((11, 8, 0), _NEVER),
        Fact.ENDS_ROWS_UNDER_LOCKS: ((11, 8, 0), _NEVER),
        Fact.OPENS_SEQUENCES_FOR_DEFAULT: ((11, 8, 0), _NEVER),
        Fact.ONE_VALUE_IS_ENOUGH: ((11, 8, 0), (0, 0, 0)),
        Fact.LITERALS_HAVE_SIGNS: ((11, 8, 0), (0, 0, 0)),
        Fact.ASKS_EMPTY_ENGINES: ((0, 0, 0), _NEVER),
        Fact.NOW_IS_TIMESTAMP: ((11, 7, 0), _NEVER),
        Fact.UPDATES_AS_QUERIES: ((11, 1, 0), _NEVER),
        Fact.LOADS_IN_SINGLE_SPACES: ((11, 8, 0), _NEVER),
        Fact.PREPARES_BODIES_ANEW: ((11, 2, 0), (0, 0, 0)),
        Fact.PASSWORD_IS_UNSAFE: (_NEVER, (5, 0, 0)),
        Fact.FULL_NODUP: ((11, 4, 0), _NEVER),
    }
)
"""First version of MariaDB and of MySQL with a fact, by fact."""
_DEFAULTS: Final[Mapping[str, Mapping[str, tuple[tuple[Version, str], ...]]]] = MappingProxyType(
    {
        "mariadb": {
            # Notes: MDEV-7635. Measured: 10.5, 10.11, 11.8.
            "binlog_format": (((0, 0, 0), "STATEMENT"), ((10, 2, 4), "MIXED")),
            "innodb_autoinc_lock_mode": (((0, 0, 0), "1"),),
            # Worklog: MDEV-19123. Measured: 10.5, 10.11 and 11.8.
            "character_set_server": (((0, 0, 0), "latin1"), ((11, 6, 0), "utf8mb4")),
        },
        "mysql": {
            # Manual of 5.7. Measured: 9.7.
            "binlog_format": (((0, 0, 0), "STATEMENT"), ((5, 7, 7), "ROW")),
            # Manual of 8.0. Measured: 9.7.
            "innodb_autoinc_lock_mode": (((0, 0, 0), "1"), ((8, 0, 0), "2")),
            "character_set_server": (((0, 0, 0), "latin1"), ((8, 0, 1), "utf8mb4")),
            # Manual of 8.4: OFF. Measured: 9.7 has ON; from which version on, nobody says.
            "enforce_gtid_consistency": (((0, 0, 0), "OFF"), ((9, 5, 0), "ON")),
            "gtid_mode": (((0, 0, 0), "OFF"), ((9, 5, 0), "ON")),
        },
    }
)
_UNTIL: Final[Mapping[Fact, tuple[Version, Version]]] = MappingProxyType(
    {
        # Between 10.11 and 11.8: 11.0 has another optimizer's cost model (notes).
        Fact.ASKS_EMPTY_ENGINES: ((11, 0, 0), _NEVER),
    }
)
"""First version without a fact, for facts that newer versions have no more."""
_MENDED: Final[Mapping[Fact, tuple[Version, ...]]] = MappingProxyType(
    {
        Fact.LOGS_ALL_OPTIONS: ((10, 11, 17), (11, 4, 11), (11, 8, 7)),
        Fact.ANNOTATES_FIRST_CACHE: ((10, 11, 12), (11, 4, 6)),
        Fact.ENDS_ROWS_UNDER_LOCKS: ((10, 11, 12), (11, 4, 6)),
        Fact.OPENS_SEQUENCES_FOR_DEFAULT: ((10, 11, 12), (11, 4, 6)),
        Fact.ONE_VALUE_IS_ENOUGH: ((10, 11, 12), (11, 4, 6)),
        Fact.LITERALS_HAVE_SIGNS: ((10, 11, 12), (11, 4, 6)),
    }
)
"""First release of each older series of MariaDB that got a fact as a fix."""


def has(fact: Fact, flavor: str, version: Version) -> bool:
    """True if a server of a flavor and version has a fact."""
    server = int(flavor != "mariadb")
    if SINCE[fact][server] <= version:
        return version < _UNTIL.get(fact, (_NEVER, _NEVER))[server]
    mended = _MENDED.get(fact, ()) if flavor == "mariadb" else ()
    return any(release[:2] == version[:2] and release <= version for release in mended)


def default(variable: str, flavor: str, version: Version) -> str:
    """The value that a stock server gives a variable; empty if no row tells it."""
    found = ""
    for since, value in _DEFAULTS[flavor].get(variable, ()):
        if version >= since:
            found = value
    return found


_COLLATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "binary": "binary",
        "latin1": "latin1_swedish_ci",
        "latin5": "latin5_turkish_ci",
        "big5": "big5_chinese_ci",
        "gbk": "gbk_chinese_ci",
        "gb2312": "gb2312_chinese_ci",
        "gb18030": "gb18030_chinese_ci",
        "sjis": "sjis_japanese_ci",
        "cp932": "cp932_japanese_ci",
        "ujis": "ujis_japanese_ci",
        "eucjpms": "eucjpms_japanese_ci",
        "euckr": "euckr_korean_ci",
        "dec8": "dec8_swedish_ci",
        "swe7": "swe7_swedish_ci",
        "hp8": "hp8_english_ci",
        "tis620": "tis620_thai_ci",
    }
)
_UNICODE: Final = frozenset(("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32"))
"""Character sets that MariaDB's character_set_collations names."""


def default_collation(charset: str, flavor: Flavor, version: Version | None = None) -> str:
    """Give the collation of text for which a character set alone is named.

    Args:
        charset: Name of the character set.
        flavor: Flavor of the server that collates.
        version: Version of the server; None for the one that is assumed where none is named.
    """
    charset = charset.lower()
    if charset == "utf8":
        charset = "utf8mb3"
    if charset == "utf8mb4" and flavor is Flavor.MYSQL:
        return "utf8mb4_0900_ai_ci"
    version = version or ASSUMED[flavor.value]
    if charset in _UNICODE and has(Fact.UNICODE_COLLATION_14, flavor.value, version):
        return f"{charset}_uca1400_ai_ci"
    return _COLLATIONS.get(charset, f"{charset}_general_ci")


def charset_of_collation(collation: str) -> str:
    """The character set that a collation's name begins with."""
    charset = collation.partition("_")[0]
    return {"utf8": "utf8mb3", "uca1400": "utf8mb4"}.get(charset, charset)


def bytes_per_character(charset: str) -> int:
    """Give the largest number of bytes of a character."""
    return _WIDTHS.get(charset, 1)


_WIDTHS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "utf8mb4": 4,
        "utf8mb3": 3,
        "utf16": 4,
        "utf16le": 4,
        "utf32": 4,
        "ucs2": 2,
        "big5": 2,
        "gbk": 2,
        "gb2312": 2,
        "sjis": 2,
        "cp932": 2,
        "euckr": 2,
        "ujis": 3,
        "eucjpms": 3,
        "gb18030": 4,
    }
)

"""What differs between versions of the servers, as data, each with the source that tells it.

A fact is a row of `SINCE`: the first version of either server that has it. A default is a list of
values, each with its first version. What no row tells is the same in all versions that are known.
Sources: *measured* on servers of that version; *manual*, *notes* or *worklog* of the server's makers.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

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
"""Of a series: the release that is meant where its last number is not said."""
_NEVER: Final = (1000, 0, 0)


class Fact(Enum):
    """What some versions of a server do and others do not."""

    SERVER_FOREIGN_KEYS = auto()
    """Foreign keys are the server's own work, not InnoDB's: it opens the tables of foreign keys,
    fires triggers of children and logs the rows that foreign keys change. Measured: MySQL 9.7;
    notes: 9.6."""
    ATOMIC_DDL = auto()
    """DDL of InnoDB tables is committed together with its log. Manual: MySQL 8.0."""
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
    SHOWS_THAT_OPTIONS_ARE_SET = auto()
    """SHOW BINLOG EVENTS shows foreign_key_checks=1 where it is off, and leaves out values. Measured:
    MariaDB 11.8; not 10.11."""
    ASKS_EMPTY_ENGINES = auto()
    """UPDATE or DELETE of one BLACKHOLE table by a whole unique key is known to find no row before it
    runs, and not logged. Measured: MariaDB 10.11; not 11.8, nor MySQL."""
    PASSWORD_IS_UNSAFE = auto()
    """PASSWORD() counts among the unsafe functions. Manual: MySQL before 8.0.11, which has none."""


SINCE: Final[Mapping[Fact, tuple[Version, Version]]] = MappingProxyType(
    {
        Fact.SERVER_FOREIGN_KEYS: (_NEVER, (9, 6, 0)),
        Fact.ATOMIC_DDL: (_NEVER, (8, 0, 0)),
        Fact.FILLS_AS_IT_CREATES: ((0, 0, 0), (8, 0, 21)),
        Fact.SOURCES_AND_REPLICAS: (_NEVER, (8, 0, 26)),
        Fact.UNSAFE_IN_XA: (_NEVER, (8, 0, 2)),
        Fact.SKIP_LOCKED: ((10, 6, 0), (8, 0, 1)),
        Fact.ROWS_OF_TEMPORARY_TABLES: (_NEVER, (8, 0, 4)),
        Fact.TEMPORARY_IN_TRANSACTION: (_NEVER, (8, 0, 13)),
        Fact.UNICODE_COLLATION_14: ((11, 5, 0), _NEVER),
        Fact.UUID_IS_NOT_NULL: ((11, 6, 0), _NEVER),
        Fact.SHOWS_THAT_OPTIONS_ARE_SET: ((11, 8, 0), _NEVER),
        Fact.ASKS_EMPTY_ENGINES: ((0, 0, 0), _NEVER),
        Fact.PASSWORD_IS_UNSAFE: (_NEVER, (5, 0, 0)),
    }
)
"""By fact: the first version of MariaDB, and of MySQL."""

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
"""By fact that newer versions have no more: the first one without it."""


def has(fact: Fact, flavor: str, version: Version) -> bool:
    """Whether a server of a flavor and version has a fact."""
    server = int(flavor != "mariadb")
    return SINCE[fact][server] <= version < _UNTIL.get(fact, (_NEVER, _NEVER))[server]


def default(variable: str, flavor: str, version: Version) -> str:
    """The value that a stock server gives a variable; empty if no row tells it."""
    found = ""
    for since, value in _DEFAULTS[flavor].get(variable, ()):
        if version >= since:
            found = value
    return found

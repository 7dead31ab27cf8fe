"""Capabilities of storage engines: logging formats of their tables, caches of changes, mixing rules.

The servers ask the handler of each table at the moment of the statement, so what depends on the
session (isolation level, logging mode) is an argument of `formats_now`. Where seed 002's table
of engines is older than the servers (BLACKHOLE, EXAMPLE), the servers are followed.

Theory of mixing: a statement's tables fall in eight classes: read or written, temporary or not,
transactional (T) or not (N); a write implies the read. Some pairs of classes are unsafe, depending
on whether earlier changes wait in the transaction cache, whether
`binlog_direct_non_transactional_updates` is on, and on the isolation level. The servers keep this
as a table of 256 masks; here it is the list of pairs that this table is made from.

Source: the `table_flags()` of the engines, and sql_lex.cc, `binlog_unsafe_map`, of MariaDB
10.11/11.8 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Flag, auto
from functools import lru_cache
from itertools import product
from types import MappingProxyType
from typing import Final

from binlane.errors import NotLoggableError
from binlane.names import ACCOUNT_DATABASE, TableName
from binlane.statements.policy.server import Server
from binlane.statements.sql.schema import Table
from binlane.statements.sql.servers import LoggingMode


class Formats(Flag):
    """The formats in which a table, or all of several tables, can be logged.

    The servers' HA_BINLOG_ROW_CAPABLE and HA_BINLOG_STMT_CAPABLE.
    """

    ROW = auto()
    STATEMENT = auto()


BOTH: Final = Formats.ROW | Formats.STATEMENT
NEITHER: Final = Formats(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTraits:
    """Capabilities of an engine of today's servers.

    Attributes:
        formats: Formats in which the engine's tables can be logged under REPEATABLE READ.
        is_transactional: The engine's tables count as transactional in the decision.
        has_rollback: The engine's changes can be rolled back and wait in the transaction cache.
        takes_part: The server counts the engine among those of a transaction that uses it.
        has_two_phases: The engine takes part in two-phase commit: groups end with Xid, not COMMIT.
        needs_repeatable_read: Tables are not logged as statement under a weaker isolation level.
        is_ndb: The engine is NDB: logged as statement only in mode STATEMENT, else it writes the binary log
            itself.
    """

    formats: Formats = BOTH
    is_transactional: bool = False
    has_rollback: bool = False
    takes_part: bool = False
    has_two_phases: bool = False
    needs_repeatable_read: bool = False
    is_ndb: bool = False

    def formats_now(self, mode: LoggingMode, *, is_below_repeatable_read: bool) -> Formats:
        """Return the formats in which the engine's tables can be logged at this moment."""
        if self.is_ndb:
            return BOTH if mode is LoggingMode.STATEMENT else Formats.ROW
        if self.needs_repeatable_read and is_below_repeatable_read:
            return self.formats & Formats.ROW
        return self.formats

    def logs_itself(self, mode: LoggingMode) -> bool:
        """True if the engine writes the binary log itself in a logging mode."""
        return self.is_ndb and mode is not LoggingMode.STATEMENT


_SPELLINGS_MAX: Final = 256
_TRANSACTIONAL: Final = EngineTraits(is_transactional=True, has_rollback=True)
_NONTRANSACTIONAL: Final = EngineTraits()
_TWO_PHASES: Final = replace(_TRANSACTIONAL, takes_part=True, has_two_phases=True)
_INNODB: Final = replace(_TWO_PHASES, needs_repeatable_read=True)
_NOT_LOGGED: Final = EngineTraits(formats=NEITHER)
_EXAMPLE: Final = replace(_TRANSACTIONAL, formats=Formats.STATEMENT)
# Crash-safe tables (TRANSACTIONAL=1) too: measured, they count as non-transactional.
_ARIA: Final = EngineTraits(takes_part=True)
_COMMON: Final = {
    "INNODB": _INNODB,
    "MYISAM": _NONTRANSACTIONAL,
    "MEMORY": _NONTRANSACTIONAL,
    "ARCHIVE": _NONTRANSACTIONAL,
    "MRG_MYISAM": _NONTRANSACTIONAL,
    "CSV": _NONTRANSACTIONAL,
    "BLACKHOLE": _TRANSACTIONAL,
    "EXAMPLE": _EXAMPLE,
    "PERFORMANCE_SCHEMA": _NOT_LOGGED,
    "FEDERATED": _NONTRANSACTIONAL,
}
MARIADB_ENGINES: Final[Mapping[str, EngineTraits]] = MappingProxyType(
    {
        **_COMMON,
        "ARIA": _ARIA,
        "SEQUENCE": _TRANSACTIONAL,
        "S3": _NOT_LOGGED,
        "FEDERATEDX": _TRANSACTIONAL,
        "SPIDER": _TWO_PHASES,
        "CONNECT": _NONTRANSACTIONAL,
        "ROCKSDB": replace(_TWO_PHASES, formats=Formats.ROW),
        "MROONGA": _NONTRANSACTIONAL,
        "OQGRAPH": _NONTRANSACTIONAL,
        "COLUMNSTORE": _TRANSACTIONAL,
        "SPHINX": _NOT_LOGGED,
        "TEST_SQL_DISCOVERY": _NOT_LOGGED,
    }
)
MYSQL_ENGINES: Final[Mapping[str, EngineTraits]] = MappingProxyType(
    {
        **_COMMON,
        "NDBCLUSTER": EngineTraits(
            formats=Formats.ROW,
            is_transactional=True,
            has_rollback=True,
            takes_part=True,
            is_ndb=True,
        ),
        "TEMPTABLE": _NOT_LOGGED,
        "ROCKSDB": replace(_TWO_PHASES, formats=Formats.ROW),
    }
)
_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "MERGE": "MRG_MYISAM",
        "HEAP": "MEMORY",
        "NDB": "NDBCLUSTER",
        "INNOBASE": "INNODB",
        "MARIA": "ARIA",
    }
)


def traits(table: Table, server: Server) -> EngineTraits:
    """Return the capabilities of a table's engine, with the exceptions for this table.

    Raises:
        NotLoggableError: If the server has no such engine that is known.
    """
    known = engine_traits(table.engine, server.flavor)
    if known is _ARIA and (table.is_temporary or not table.is_transactional_option):
        known = _NONTRANSACTIONAL
    if table.is_sequence:
        # A sequence's row is not rolled back, whatever engine keeps it, nor logged as statement.
        return EngineTraits(formats=known.formats & Formats.ROW)
    return known


@lru_cache(_SPELLINGS_MAX)
def engine_traits(engine: str, flavor: str) -> EngineTraits:
    """Return the capabilities of an engine of a flavor's servers, by its name in any case.

    Raises:
        NotLoggableError: If there is no such engine that is known.
    """
    engines = MARIADB_ENGINES if flavor == "mariadb" else MYSQL_ENGINES
    name = engine.upper()
    known = engines.get(_ALIASES.get(name, name))
    if known is None:
        raise NotLoggableError(
            f"it is not known how storage engine {engine} can be logged",
            hint=f"the known ones are {', '.join(sorted(engines))}",
        )
    return known


# The servers' own tables that are never replicated, in database `mysql`.
_LOG_TABLES: Final = frozenset({"general_log", "slow_log"})
_MARIADB_LOG_TABLES: Final = _LOG_TABLES | {"transaction_registry"}
_MYSQL_LOG_TABLES: Final = _LOG_TABLES | {
    *("slave_master_info", "slave_relay_log_info", "slave_worker_info", "gtid_executed"),
}


def is_unreplicated(name: TableName, server: Server) -> bool:
    """True if a table is one of those that the servers never replicate."""
    tables = _MARIADB_LOG_TABLES if server.is_mariadb else _MYSQL_LOG_TABLES
    return name.database == ACCOUNT_DATABASE and name.table in tables


class Access(Flag):
    """Classes of tables that a statement accesses."""

    READS_TRANS = auto()
    READS_NONTRANS = auto()
    READS_TEMP_TRANS = auto()
    READS_TEMP_NONTRANS = auto()
    WRITES_TRANS = auto()
    WRITES_NONTRANS = auto()
    WRITES_TEMP_TRANS = auto()
    WRITES_TEMP_NONTRANS = auto()


NOTHING: Final = Access(0)


_CLASSES: Final = dict(
    zip(product((False, True), (False, True), (True, False)), Access, strict=True)
)


def access_class(*, is_written: bool, is_temporary: bool, is_transactional: bool) -> Access:
    """The class of one table."""
    return _CLASSES[is_written, is_temporary, is_transactional]


@dataclass(frozen=True, slots=True)
class MixedRule:
    """A pair of classes that is unsafe within a transaction of several statements.

    Attributes:
        pair: The two classes of accesses together.
        is_direct: Required value of `binlog_direct_non_transactional_updates`; None: either.
        needs_full_cache: The rule holds only if something waits in the transaction cache.
    """

    pair: Access
    is_direct: bool | None = None
    needs_full_cache: bool = False

    def holds(self, access: Access, *, is_direct: bool, is_cache_empty: bool) -> bool:
        """True if the rule makes a statement with these accesses unsafe."""
        return (
            access & self.pair == self.pair
            and self.is_direct in (None, is_direct)
            and not (self.needs_full_cache and is_cache_empty)
        )


MIXED_RULES: Final = (
    MixedRule(Access.WRITES_TRANS | Access.WRITES_NONTRANS),
    MixedRule(Access.WRITES_TRANS | Access.READS_NONTRANS),
    MixedRule(Access.WRITES_NONTRANS | Access.WRITES_TEMP_TRANS),
    MixedRule(Access.WRITES_TEMP_TRANS | Access.READS_NONTRANS),
    MixedRule(Access.WRITES_TRANS | Access.WRITES_TEMP_NONTRANS, is_direct=True),
    MixedRule(Access.WRITES_TRANS | Access.READS_TEMP_NONTRANS, is_direct=True),
    MixedRule(Access.WRITES_TEMP_TRANS | Access.WRITES_TEMP_NONTRANS, is_direct=True),
    MixedRule(Access.WRITES_TEMP_TRANS | Access.READS_TEMP_NONTRANS, is_direct=True),
    MixedRule(Access.WRITES_NONTRANS | Access.READS_TRANS, needs_full_cache=True),
    MixedRule(Access.WRITES_NONTRANS | Access.READS_TEMP_TRANS, needs_full_cache=True),
    MixedRule(
        Access.WRITES_TEMP_NONTRANS | Access.READS_TRANS, is_direct=True, needs_full_cache=True
    ),
    MixedRule(
        Access.WRITES_TEMP_NONTRANS | Access.READS_TEMP_TRANS, is_direct=True, needs_full_cache=True
    ),
    MixedRule(
        Access.WRITES_TEMP_NONTRANS | Access.READS_NONTRANS, is_direct=False, needs_full_cache=True
    ),
)
_NONTRANS_WRITES: Final = Access.WRITES_NONTRANS | Access.WRITES_TEMP_NONTRANS


def is_mixed_unsafe(
    access: Access,
    *,
    is_in_transaction: bool,
    is_direct: bool,
    is_cache_empty: bool,
    is_below_repeatable_read: bool,
) -> bool:
    """True if a statement with these accesses is unsafe.

    Args:
        access: Classes of all its tables.
        is_in_transaction: A transaction of several statements is open.
        is_direct: The session's value of `binlog_direct_non_transactional_updates`.
        is_cache_empty: Nothing waits in the transaction cache.
        is_below_repeatable_read: The isolation level is a weaker one; then a read of a
            transactional table may not go into another one, in a transaction or not.
    """
    if is_below_repeatable_read and Access.READS_TRANS in access and access & _NONTRANS_WRITES:
        return True
    return is_in_transaction and any(
        rule.holds(access, is_direct=is_direct, is_cache_empty=is_cache_empty)
        for rule in MIXED_RULES
    )

"""What storage engines can: how their tables can be logged, and in which cache their changes wait.

The servers ask the handler of each table at the moment of the statement, so what depends on the
session (isolation level, logging mode) is an argument of `capability_now`. Where seed 002's table
of engines is older than the servers (BLACKHOLE, EXAMPLE), the servers are followed.

Source: the `table_flags()` of the engines of MariaDB 10.11/11.8 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from binlane.errors import NotLoggableError
from binlane.names import ACCOUNT_DATABASE
from binlane.sql.logging_mode import LoggingMode

if TYPE_CHECKING:
    from binlane.names import TableName
    from binlane.policy.server import Server
    from binlane.sql.schema import Table


@dataclass(frozen=True, slots=True)
class Capability:
    """How a table, or a set of tables, can be logged.

    Attributes:
        is_row_capable: HA_BINLOG_ROW_CAPABLE.
        is_statement_capable: HA_BINLOG_STMT_CAPABLE.
    """

    is_row_capable: bool
    is_statement_capable: bool

    def __and__(self, other: Capability) -> Capability:
        """What both can."""
        return Capability(
            self.is_row_capable and other.is_row_capable,
            self.is_statement_capable and other.is_statement_capable,
        )

    def __or__(self, other: Capability) -> Capability:
        """What at least one can."""
        return Capability(
            self.is_row_capable or other.is_row_capable,
            self.is_statement_capable or other.is_statement_capable,
        )


BOTH: Final = Capability(is_row_capable=True, is_statement_capable=True)
ROW_ONLY: Final = Capability(is_row_capable=True, is_statement_capable=False)
STATEMENT_ONLY: Final = Capability(is_row_capable=False, is_statement_capable=True)
NEITHER: Final = Capability(is_row_capable=False, is_statement_capable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTraits:
    """What an engine of today's servers can.

    Attributes:
        capability: How its tables can be logged under REPEATABLE READ.
        is_transactional: Its tables count as transactional in the decision.
        has_rollback: Its changes can be rolled back and wait in the transaction cache.
        takes_part: The server counts it among the engines of a transaction that uses it.
        has_two_phases: It takes part in two-phase commit: its groups end with Xid, not COMMIT.
        is_self_logging: It writes the binary log itself.
        needs_repeatable_read: Not as statement under a weaker isolation level.
        is_ndb: As statement only in mode STATEMENT, and then it does not log by itself.
    """

    capability: Capability = BOTH
    is_transactional: bool = False
    has_rollback: bool = False
    takes_part: bool = False
    has_two_phases: bool = False
    is_self_logging: bool = False
    needs_repeatable_read: bool = False
    is_ndb: bool = False


_SPELLINGS_MAX: Final = 256
_TRANSACTIONAL: Final = EngineTraits(is_transactional=True, has_rollback=True)
_NONTRANSACTIONAL: Final = EngineTraits()
_TWO_PHASES: Final = replace(_TRANSACTIONAL, takes_part=True, has_two_phases=True)
_INNODB: Final = replace(_TWO_PHASES, needs_repeatable_read=True)
_NOT_LOGGED: Final = EngineTraits(capability=NEITHER)
_EXAMPLE: Final = replace(_TRANSACTIONAL, capability=STATEMENT_ONLY)
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
        "ROCKSDB": replace(_TWO_PHASES, capability=ROW_ONLY),
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
            capability=ROW_ONLY,
            is_transactional=True,
            has_rollback=True,
            takes_part=True,
            is_ndb=True,
        ),
        "TEMPTABLE": _NOT_LOGGED,
        "ROCKSDB": replace(_TWO_PHASES, capability=ROW_ONLY),
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
    """What a table's engine can, by what is special about this table.

    Raises:
        NotLoggableError: If the server has no such engine that is known.
    """
    known = engine_traits(table.engine, server)
    if known is _ARIA and (table.is_temporary or not table.is_transactional_option):
        known = _NONTRANSACTIONAL
    if table.is_sequence:
        # A sequence's row is not rolled back, whatever engine keeps it, nor logged as statement.
        return EngineTraits(capability=known.capability & ROW_ONLY)
    return known


def engine_traits(engine: str, server: Server) -> EngineTraits:
    """What an engine of a server can, by its name in any case.

    Raises:
        NotLoggableError: If the server has no such engine that is known.
    """
    return _engine_traits(engine, is_mariadb=server.is_mariadb)


@lru_cache(_SPELLINGS_MAX)
def _engine_traits(engine: str, *, is_mariadb: bool) -> EngineTraits:
    engines = MARIADB_ENGINES if is_mariadb else MYSQL_ENGINES
    name = engine.upper()
    known = engines.get(_ALIASES.get(name, name))
    if known is None:
        raise _unknown(engine, engines)
    return known


def capability_now(
    known: EngineTraits, *, logging_mode: LoggingMode, is_below_repeatable_read: bool
) -> Capability:
    """How a table can be logged at this moment."""
    if known.is_ndb:
        return BOTH if logging_mode is LoggingMode.STATEMENT else ROW_ONLY
    if known.needs_repeatable_read and is_below_repeatable_read:
        return known.capability & ROW_ONLY
    return known.capability


def is_self_logging_now(known: EngineTraits, *, logging_mode: LoggingMode) -> bool:
    """Whether an engine writes the binary log itself: NDB, except in mode STATEMENT."""
    return known.is_self_logging or (known.is_ndb and logging_mode is not LoggingMode.STATEMENT)


# The servers' own tables that are never replicated, in database `mysql`.
_LOG_TABLES: Final = frozenset({"general_log", "slow_log"})
_MARIADB_LOG_TABLES: Final = _LOG_TABLES | {"transaction_registry"}
_MYSQL_LOG_TABLES: Final = _LOG_TABLES | {
    *("slave_master_info", "slave_relay_log_info", "slave_worker_info", "gtid_executed"),
}


def is_unreplicated(name: TableName, server: Server) -> bool:
    """Whether a table is one of those that the servers never replicate."""
    tables = _MARIADB_LOG_TABLES if server.is_mariadb else _MYSQL_LOG_TABLES
    return name.database == ACCOUNT_DATABASE and name.table in tables


def _unknown(engine: str, engines: Iterable[str]) -> NotLoggableError:
    return NotLoggableError(
        f"it is not known how storage engine {engine} can be logged",
        hint=f"the known ones are {', '.join(sorted(engines))}",
    )

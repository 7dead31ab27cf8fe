"""The session in which a statement is decided."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from binlane.sql.logging_mode import LoggingMode

if TYPE_CHECKING:
    from binlane.policy.server import Server


class Isolation(IntEnum):
    """Transaction isolation levels, weakest first."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
    REPEATABLE_READ = 2
    SERIALIZABLE = 3


class Circumstances(NamedTuple):
    """The session in which a statement is decided.

    Attributes:
        server: Whose rules.
        logging_mode: binlog_format, or that of the binlog.
        isolation: Of the transaction.
        is_in_transaction: In a transaction of several statements (BEGIN, or autocommit=0).
        is_trx_cache_empty: Nothing stands in the transaction cache.
        is_direct: binlog_direct_non_transactional_updates.
        is_row_forced: Rows are logged from an earlier statement on: in MariaDB while temporary
            tables are open whose creation is not logged; in both servers for the rest of a CALL.
        is_in_xa: An XA transaction is active.
        is_sub_statement: Inside of a stored function or trigger.
        is_bulk: Array binding of MariaDB's protocol.
        is_row_injection: BINLOG statement.
        unlogged_temporary: Names of open temporary tables whose creation this binlog does not hold.
        has_locked_tables: LOCK TABLES is in effect.
        autoinc_lock_mode: innodb_autoinc_lock_mode.
        delayed_mode: The global binlog_format, by which INSERT DELAYED goes.
        gtid_consistency: MySQL's enforce_gtid_consistency: `OFF`, `WARN` or `ON`.
    """

    server: Server
    logging_mode: LoggingMode
    isolation: Isolation = Isolation.REPEATABLE_READ
    is_in_transaction: bool = False
    is_trx_cache_empty: bool = True
    is_direct: bool = False
    is_row_forced: bool = False
    is_in_xa: bool = False
    is_sub_statement: bool = False
    is_bulk: bool = False
    is_row_injection: bool = False
    unlogged_temporary: frozenset[object] = frozenset()
    has_locked_tables: bool = False
    autoinc_lock_mode: int = 1
    delayed_mode: LoggingMode = LoggingMode.MIXED
    gtid_consistency: str = "OFF"

    @property
    def is_below_repeatable_read(self) -> bool:
        """READ COMMITTED or READ UNCOMMITTED."""
        return self.isolation < Isolation.REPEATABLE_READ

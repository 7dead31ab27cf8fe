"""Errors with which the servers refuse a statement because of how it would be logged: their texts.

Source: the message files of MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from binlane.policy import reasons

if TYPE_CHECKING:
    from binlane.names import TableName
    from binlane.policy.reasons import ReasonFound
    from binlane.policy.server import Server
    from binlane.sql.facts import Shift


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggingError:
    """An error that the server raises instead of running the statement.

    Attributes:
        errno: As the client gets it.
        sqlstate: Five characters.
        symbol: `ER_BINLOG_…`.
        message: The server's text, its arguments filled in.
        cause: The unsafe reason of 1663; None otherwise.
    """

    errno: int
    symbol: str
    message: str
    sqlstate: str = "HY000"
    cause: ReasonFound | None = None

    def moved(self, shift: Shift) -> LoggingError:
        """The same for a statement that differs only in its literals."""
        return self if self.cause is None else replace(self, cause=self.cause.moved(shift))


_IMPOSSIBLE: Final = "Cannot execute statement: impossible to write to binary log since "
_LIMITED_INNODB: Final = (
    " InnoDB is limited to row-logging when transaction isolation level is READ COMMITTED or "
    "READ UNCOMMITTED."
)


def row_and_statement_engines(server: Server) -> LoggingError:
    """1661: nothing is left that all written tables can be logged as."""
    return _impossible(
        1661,
        "ER_BINLOG_ROW_ENGINE_AND_STMT_ENGINE",
        "both row-incapable engines and statement-incapable engines are involved",
        server,
    )


def row_mode_and_statement_engine(server: Server) -> LoggingError:
    """1662: mode ROW, and a table that can be logged as statement only."""
    return _impossible(
        1662,
        "ER_BINLOG_ROW_MODE_AND_STMT_ENGINE",
        "BINLOG_FORMAT = ROW and at least one table uses a storage engine limited to "
        "statement-based logging",
        server,
    )


def unsafe_and_statement_engine(found: ReasonFound, server: Server) -> LoggingError:
    """1663: unsafe, and a table that can be logged as statement only."""
    return LoggingError(
        errno=1663,
        symbol="ER_BINLOG_UNSAFE_AND_STMT_ENGINE",
        message=(
            f"{_IMPOSSIBLE}statement is unsafe, storage engine is limited to statement-based "
            f"logging, and BINLOG_FORMAT = MIXED. {reasons.text(found.reason, server)}"
        ),
        cause=found,
    )


def row_injection_and_statement_engine(server: Server) -> LoggingError:
    """1664: row events for a table that can be logged as statement only."""
    return _impossible(
        1664,
        "ER_BINLOG_ROW_INJECTION_AND_STMT_ENGINE",
        "statement is in row format and at least one table uses a storage engine limited to "
        "statement-based logging",
        server,
    )


def statement_mode_and_row_engine(*, is_innodb: bool = False) -> LoggingError:
    """1665: mode STATEMENT, and a table that can be logged as row only.

    Args:
        is_innodb: InnoDB itself raises it, and adds why.
    """
    return LoggingError(
        errno=1665,
        symbol="ER_BINLOG_STMT_MODE_AND_ROW_ENGINE",
        message=(
            f"{_IMPOSSIBLE}BINLOG_FORMAT = STATEMENT and at least one table uses a storage engine "
            f"limited to row-based logging.{_LIMITED_INNODB if is_innodb else ''}"
        ),
    )


def row_injection_and_statement_mode(server: Server) -> LoggingError:
    """1666: row events under mode STATEMENT."""
    return _impossible(
        1666,
        "ER_BINLOG_ROW_INJECTION_AND_STMT_MODE",
        "statement is in row format and BINLOG_FORMAT = STATEMENT",
        server,
    )


def several_engines_and_self_logging(server: Server) -> LoggingError:
    """1667: several engines are written, one of which logs by itself."""
    return _impossible(
        1667,
        "ER_BINLOG_MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE",
        "more than one engine is involved and at least one engine is self-logging",
        server,
    )


def replicated_and_other_tables(server: Server) -> LoggingError:
    """1844: as statement, and only some of the written tables are replicated."""
    return _impossible(
        1844,
        "ER_BINLOG_STMT_MODE_AND_NO_REPL_TABLES",
        "BINLOG_FORMAT = STATEMENT, and both replicated and non replicated tables are written to",
        server,
    )


def delay_not_supported(name: TableName) -> LoggingError:
    """1616: INSERT DELAYED into an engine that cannot."""
    return LoggingError(
        errno=1616,
        symbol="ER_DELAYED_NOT_SUPPORTED",
        message=f"DELAYED option not supported for table '{name.table}'",
    )


def bulk_in_statement_mode() -> LoggingError:
    """4033: MariaDB's array binding under mode STATEMENT."""
    return LoggingError(
        errno=4033,
        symbol="ER_BINLOG_NON_SUPPORTED_BULK",
        message="Only row based replication supported for bulk operations",
    )


def nontransactional_and_gtid() -> LoggingError:
    """1785: MySQL's GTID consistency allows no mixture of engines."""
    return LoggingError(
        errno=1785,
        symbol="ER_GTID_UNSAFE_NON_TRANSACTIONAL_TABLE",
        message=(
            "Statement violates GTID consistency: Updates to non-transactional tables can only be "
            "done in either autocommitted statements or single-statement transactions, and never "
            "in the same statement as updates to transactional tables."
        ),
    )


def create_select_and_gtid() -> LoggingError:
    """1786: MySQL's GTID consistency allows no CREATE … SELECT of an engine without atomic DDL."""
    return LoggingError(
        errno=1786,
        symbol="ER_GTID_UNSAFE_CREATE_SELECT",
        message="Statement violates GTID consistency: CREATE TABLE ... SELECT.",
    )


def temporary_table_and_gtid() -> LoggingError:
    """3748: MySQL's GTID consistency, and a temporary table in a transaction as statement."""
    return LoggingError(
        errno=3748,
        symbol="ER_CLIENT_GTID_UNSAFE_CREATE_DROP_TEMP_TABLE_IN_TRX_IN_SBR",
        message=(
            "Statement violates GTID consistency: CREATE TEMPORARY TABLE and DROP TEMPORARY TABLE "
            "are not allowed inside a transaction or inside a procedure in a transactional "
            "context when @@session.binlog_format=STATEMENT."
        ),
    )


def no_such_table(name: TableName) -> LoggingError:
    """1146: no such table or view."""
    return LoggingError(
        errno=1146,
        sqlstate="42S02",
        symbol="ER_NO_SUCH_TABLE",
        message=f"Table '{name.plain}' doesn't exist",
    )


def no_such_database(database: str) -> LoggingError:
    """1049: no such database."""
    return LoggingError(
        errno=1049,
        sqlstate="42000",
        symbol="ER_BAD_DB_ERROR",
        message=f"Unknown database '{database}'",
    )


def no_such_function(name: TableName) -> LoggingError:
    """1305: no such stored function."""
    return LoggingError(
        errno=1305,
        sqlstate="42000",
        symbol="ER_SP_DOES_NOT_EXIST",
        message=f"FUNCTION {name.plain} does not exist",
    )


def written_while_created(written: TableName, created: TableName) -> LoggingError:
    """1746: MySQL's CREATE … SELECT calls a function that writes a table."""
    return LoggingError(
        errno=1746,
        symbol="ER_CANT_UPDATE_TABLE_IN_CREATE_TABLE_SELECT",
        message=f"Can't update table '{written.table}' while '{created.table}' is being created.",
    )


def view_recursion(name: TableName) -> LoggingError:
    """1462: a view refers to itself."""
    return LoggingError(
        errno=1462,
        symbol="ER_VIEW_RECURSIVE",
        message=f"{name} contains view recursion",
    )


def invalid_view(name: TableName) -> LoggingError:
    """1356: a view refers to what does not exist."""
    return LoggingError(
        errno=1356,
        symbol="ER_VIEW_INVALID",
        message=(
            f"View '{name.plain}' references invalid table(s) or column(s) or function(s) or "
            "definer/invoker of view lack rights to use them"
        ),
    )


def unknown_column(name: str, clause: str) -> LoggingError:
    """1054: no such column; `clause` says where, or is the table of an ALTER TABLE."""
    message = f"Unknown column '{name}' in '{clause}'"
    return _named(1054, "42S22", "ER_BAD_FIELD_ERROR", message)


def duplicate_column(name: str) -> LoggingError:
    """1060: a table, view, derived table or key has a column twice."""
    return _named(1060, "42S21", "ER_DUP_FIELDNAME", f"Duplicate column name '{name}'")


def column_specified_twice(name: str) -> LoggingError:
    """1110: a list of columns has one twice."""
    message = f"Column '{name}' specified twice"
    return _named(1110, "42000", "ER_FIELD_SPECIFIED_TWICE", message)


def wrong_row_length(row: int) -> LoggingError:
    """1136: a row has more or fewer values than there are columns."""
    message = f"Column count doesn't match value count at row {row}"
    return _named(1136, "21S01", "ER_WRONG_VALUE_COUNT_ON_ROW", message)


def unknown_table(shown: str) -> LoggingError:
    """1051: `t.*` of a table that FROM does not name."""
    return _named(1051, "42S02", "ER_BAD_TABLE_ERROR", f"Unknown table '{shown}'")


def view_column_count(server: Server) -> LoggingError:
    """1353: a view's list of names and its query differ in length."""
    message = "View's SELECT and view's field list have different column counts"
    if not server.is_mariadb:
        message = (
            "In definition of view, derived table or common table expression, SELECT list and "
            "column names list have different column counts"
        )
    return _named(1353, "HY000", "ER_VIEW_WRONG_LIST", message)


def duplicate_key(name: str) -> LoggingError:
    """1061: two keys of one name."""
    return _named(1061, "42000", "ER_DUP_KEYNAME", f"Duplicate key name '{name}'")


def two_primary_keys() -> LoggingError:
    """1068."""
    return _named(1068, "42000", "ER_MULTIPLE_PRI_KEY", "Multiple primary key defined")


def no_key_column(name: str) -> LoggingError:
    """1072: a key is over a column that is not there."""
    message = f"Key column '{name}' doesn't exist in table"
    return _named(1072, "42000", "ER_KEY_COLUMN_DOES_NOT_EXITS", message)


def wrong_auto_key() -> LoggingError:
    """1075: AUTO_INCREMENT twice, or without a key."""
    message = (
        "Incorrect table definition; there can be only one auto column and it must be defined "
        "as a key"
    )
    return _named(1075, "42000", "ER_WRONG_AUTO_KEY", message)


def all_columns_dropped() -> LoggingError:
    """1090: ALTER TABLE leaves no column."""
    message = "You can't delete all columns with ALTER TABLE; use DROP TABLE instead"
    return _named(1090, "42000", "ER_CANT_REMOVE_ALL_FIELDS", message)


def cannot_drop(what: str, name: str, server: Server) -> LoggingError:
    """1091: a column, key or constraint to drop is not there."""
    message = f"Can't DROP '{name}'; check that column/key exists"
    if server.is_mariadb:
        message = f"Can't DROP {what} `{name}`; check that it exists"
    return _named(1091, "42000", "ER_CANT_DROP_FIELD_OR_KEY", message)


def no_such_constraint(name: str) -> LoggingError:
    """3940: MySQL's DROP CONSTRAINT of what is not there."""
    message = f"Constraint '{name}' does not exist."
    return _named(3940, "HY000", "ER_CONSTRAINT_NOT_FOUND", message)


def no_such_key(name: str, table: TableName) -> LoggingError:
    """1176: a key to rename or alter is not there."""
    message = f"Key '{name}' doesn't exist in table '{table.table}'"
    return _named(1176, "42000", "ER_KEY_DOES_NOT_EXITS", message)


def wrong_key_name(name: str) -> LoggingError:
    """1280: another key than the primary one is called PRIMARY."""
    return _named(1280, "42000", "ER_WRONG_NAME_FOR_INDEX", f"Incorrect index name '{name}'")


def _named(errno: int, sqlstate: str, symbol: str, message: str) -> LoggingError:
    return LoggingError(errno=errno, sqlstate=sqlstate, symbol=symbol, message=message)


def _impossible(errno: int, symbol: str, why: str, server: Server) -> LoggingError:
    end = "" if server.is_mariadb else "."
    return LoggingError(errno=errno, symbol=symbol, message=f"{_IMPOSSIBLE}{why}{end}")

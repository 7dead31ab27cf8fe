"""Advice against findings, for those whose cause gives no advice itself."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from binlane.statements.policy.reasons import Reason, symbol

_ROWS_HINT: Final = "binlog_format = MIXED or ROW logs it in rows"
_SWITCH_HINT: Final = "set it before the session makes temporary tables, or drop them first"
_COMMIT_HINT: Final = "COMMIT or ROLLBACK first"
_CALLER_HINT: Final = "set it in the session that calls, before it does"
HINTS: Final = MappingProxyType(
    {
        **{symbol(reason): _ROWS_HINT for reason in Reason},
        "ER_BINLOG_ROW_MODE_AND_STMT_ENGINE": (
            "binlog_format = STATEMENT or MIXED, or an engine that can log rows"
        ),
        "ER_BINLOG_UNSAFE_AND_STMT_ENGINE": (
            "make the statement safe, or write to an engine that can log rows"
        ),
        "ER_BINLOG_STMT_MODE_AND_ROW_ENGINE": (
            "binlog_format = MIXED or ROW; InnoDB can log statements from REPEATABLE READ on"
        ),
        "ER_BINLOG_ROW_ENGINE_AND_STMT_ENGINE": "write to one of the engines at a time",
        "ER_BINLOG_STMT_MODE_AND_NO_REPL_TABLES": "write to tables of one sort at a time",
        "ER_TEMP_TABLE_PREVENTS_SWITCH_OUT_OF_RBR": _SWITCH_HINT,
        "ER_TEMP_TABLE_PREVENTS_SWITCH_SESSION_BINLOG_FORMAT": _SWITCH_HINT,
        "ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_BINLOG_FORMAT": _COMMIT_HINT,
        "ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_BINLOG_DIRECT": _COMMIT_HINT,
        "ER_INSIDE_TRANSACTION_PREVENTS_SWITCH_SQL_LOG_BIN": _COMMIT_HINT,
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_FORMAT": _CALLER_HINT,
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_BINLOG_DIRECT": _CALLER_HINT,
        "ER_STORED_FUNCTION_PREVENTS_SWITCH_SQL_LOG_BIN": _CALLER_HINT,
        "ER_NO_SUCH_TABLE": (
            "define it in --schema, or say --assume-engine to take unknown tables for that engine's"
        ),
    }
)
"""By symbol."""

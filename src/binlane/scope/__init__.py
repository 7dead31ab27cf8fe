"""Which binlog logs what: scopes, definitions, the statements that make them, and their safety.

Pure. Definitions are kept by `store`, what a statement touches comes from `sql`.
"""

from binlane.scope.definition import (
    Definition,
    check_name,
    duplicate_binlog,
    look_up,
    unknown_binlog,
)
from binlane.scope.parser import parse_binlog_statement
from binlane.scope.safety import (
    Coverage,
    check_statement,
    check_transaction,
    coverage,
)
from binlane.scope.scope import Scope, ScopeList, ScopeObject
from binlane.scope.statements import (
    AlterBinlog,
    BinlogStatement,
    CreateBinlog,
    DropBinlog,
    FlushBinaryLogs,
    PurgeBinaryLogs,
    ShowBinaryLogs,
    ShowBinlogEvents,
    ShowBinlogs,
    ShowBinlogStatus,
    ShowReplicas,
    alter,
    create,
)

__all__ = [
    "AlterBinlog",
    "BinlogStatement",
    "Coverage",
    "CreateBinlog",
    "Definition",
    "DropBinlog",
    "FlushBinaryLogs",
    "PurgeBinaryLogs",
    "Scope",
    "ScopeList",
    "ScopeObject",
    "ShowBinaryLogs",
    "ShowBinlogEvents",
    "ShowBinlogStatus",
    "ShowBinlogs",
    "ShowReplicas",
    "alter",
    "check_name",
    "check_statement",
    "check_transaction",
    "coverage",
    "create",
    "duplicate_binlog",
    "look_up",
    "parse_binlog_statement",
    "unknown_binlog",
]

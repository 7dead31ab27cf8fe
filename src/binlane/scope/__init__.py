"""Which binlog logs what: scopes, definitions, the statements that make them, and their safety.

Pure. Definitions are kept by `store`, what a statement touches comes from `sql`. What this package
offers is imported when it is first used, since readers need a scope alone, and no parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from binlane.scope.definition import (
        Definition,
        check_name,
        duplicate_binlog,
        look_up,
        unknown_binlog,
    )
    from binlane.scope.parser import parse_binlog_statement
    from binlane.scope.safety import Coverage, check_statement, coverage, find_danger
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
        StartBinlog,
        StopBinlog,
        alter,
        create,
    )

_HOMES: Final[Mapping[str, tuple[str, ...]]] = {
    "definition": ("Definition", "check_name", "duplicate_binlog", "look_up", "unknown_binlog"),
    "parser": ("parse_binlog_statement",),
    "safety": ("Coverage", "check_statement", "coverage", "find_danger"),
    "scope": ("Scope", "ScopeList", "ScopeObject"),
    "statements": (
        "AlterBinlog",
        "BinlogStatement",
        "CreateBinlog",
        "DropBinlog",
        "FlushBinaryLogs",
        "PurgeBinaryLogs",
        "ShowBinaryLogs",
        "ShowBinlogEvents",
        "ShowBinlogs",
        "ShowBinlogStatus",
        "ShowReplicas",
        "StartBinlog",
        "StopBinlog",
        "alter",
        "create",
    ),
}

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
    "StartBinlog",
    "StopBinlog",
    "alter",
    "check_name",
    "check_statement",
    "coverage",
    "create",
    "duplicate_binlog",
    "find_danger",
    "look_up",
    "parse_binlog_statement",
    "unknown_binlog",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

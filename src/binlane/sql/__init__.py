"""SQL texts: what a statement reads, writes, renames and drops.

Pure analysis of text. What a binlog does with the answer lives in `scope` and `routing`; what the
server knows and the text does not (views, triggers, routines) is not known here.
"""

from binlane.sql.analysis import analyse
from binlane.sql.effects import StatementEffects, StatementKind
from binlane.sql.logging_mode import LoggingFormat, LoggingMode
from binlane.sql.tokens import SqlSyntaxError, Token, TokenKind, tokenise

__all__ = [
    "LoggingFormat",
    "LoggingMode",
    "SqlSyntaxError",
    "StatementEffects",
    "StatementKind",
    "Token",
    "TokenKind",
    "analyse",
    "tokenise",
]

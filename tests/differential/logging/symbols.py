"""Symbols of the notes 1592 by what their texts say."""

from __future__ import annotations

from typing import Final

# A piece of each text that stands in no other, in both servers' words.
_PIECES: Final = {
    "LIMIT": ("uses a LIMIT clause",),
    "INSERT_DELAYED": ("INSERT DELAYED",),
    "SYSTEM_TABLE": ("general log", "system table"),
    "AUTOINC_COLUMNS": ("inserts into an AUTO_INCREMENT column",),
    "UDF": ("UDF",),
    "SYSTEM_VARIABLE": ("system variable",),
    "SYSTEM_FUNCTION": ("system function",),
    "NONTRANS_AFTER_TRANS": ("after accessing a transactional table",),
    "MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE": ("self-logging",),
    "MIXED_STATEMENT": ("table as well as transactional",),
    "INSERT_IGNORE_SELECT": ("INSERT IGNORE... SELECT is unsafe",),
    "INSERT_SELECT_UPDATE": ("INSERT... SELECT... ON DUPLICATE KEY UPDATE is unsafe",),
    "WRITE_AUTOINC_SELECT": ("after selecting from another table",),
    "REPLACE_SELECT": ("REPLACE... SELECT is unsafe",),
    "CREATE_IGNORE_SELECT": ("CREATE... IGNORE SELECT is unsafe",),
    "CREATE_REPLACE_SELECT": ("CREATE... REPLACE SELECT is unsafe",),
    "CREATE_SELECT_AUTOINC": ("CREATE TABLE... SELECT...  on a table with an auto-increment",),
    "UPDATE_IGNORE": ("UPDATE IGNORE is unsafe",),
    "INSERT_TWO_KEYS": ("more than one UNIQUE KEY",),
    "AUTOINC_NOT_FIRST": ("not the first part",),
    "FULLTEXT_PLUGIN": ("fulltext parser plugin",),
    "SKIP_LOCKED": ("SKIP LOCKED",),
    "NOWAIT": ("NOWAIT",),
    "XA": ("inside a XA transaction",),
    "DEFAULT_EXPRESSION_IN_SUBSTATEMENT": ("DEFAULT expression",),
    "ACL_TABLE_READ_IN_DML_DDL": ("ACL table",),
}


def symbol(flavor: str, text: str) -> str:
    """The symbol of a note; the text itself if it is none that is known."""
    for name, pieces in _PIECES.items():
        if any(piece in text for piece in pieces):
            if name == "SYSTEM_VARIABLE" and flavor == "mariadb" and "function" in text:
                continue
            return f"ER_BINLOG_UNSAFE_{name}"
    return text

"""What the first words of a statement tell, without reading the rest of it."""

from __future__ import annotations

import re
from typing import Final

_GAP: Final = rb"(?:\s | \#[^\n]*+ | --[\s][^\n]*+ | /\*M?!\d*+ | /\*(?!M?!)(?:[^*]|\*(?!/))*\*/)*"
_ROWS_ONLY: Final = re.compile(
    rb"""GAP (?: BEGIN | COMMIT | ROLLBACK | SAVEPOINT | RELEASE | XA
      | INSERT | UPDATE | DELETE | REPLACE | LOAD | SELECT | WITH | DO ) \b
    """.replace(b"GAP", _GAP),
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_BESIDE_TABLES: Final = re.compile(
    rb"""GAP (?:
        (?: BEGIN | COMMIT | ROLLBACK | SAVEPOINT | RELEASE | XA
          | GRANT | REVOKE | FLUSH | KILL | INSTALL | UNINSTALL | RESET
          | SET (?! GAP STATEMENT\b) ) \b
      | (?: ANALYZE | OPTIMIZE | CHECK | REPAIR ) GAP
        (?: (?: LOCAL | NO_WRITE_TO_BINLOG ) GAP )? TABLES? \b
      | (?: CREATE | ALTER | DROP | RENAME ) GAP (?: OR GAP REPLACE GAP )?
        (?: (?: AGGREGATE | (?: DEFINER | ALGORITHM ) \s*=\s* \S+ | SQL \s+ SECURITY \s+ \w+ ) GAP )*
        (?: USER | ROLE | VIEW | FUNCTION | PROCEDURE | EVENT | SERVER ) \b
    )""".replace(b"GAP", _GAP),
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def is_beside_tables(statement: bytes) -> bool:
    """Whether a statement surely changes neither tables nor their rows, as logs have them.

    Of most kinds that do not; what begins otherwise may be one, too. A trigger is no such, since it
    says what statements that change rows do beside that.
    """
    return _BESIDE_TABLES.match(statement) is not None


def is_about_rows_only(statement: bytes) -> bool:
    """Whether a statement changes rows or transactions only."""
    return _ROWS_ONLY.match(statement) is not None


def first_word(statement: str) -> str:
    """The word that a statement begins with, in capitals; empty if it begins with none.

    The brackets of executable comments are gone behind, as are ordinary comments.
    """
    index, length = 0, len(statement)
    while index < length:
        if statement[index].isspace():
            index += 1
        elif statement.startswith(("/*!", "/*M!"), index):
            index = statement.index("!", index) + 1
            while index < length and statement[index].isdigit():
                index += 1
        elif statement.startswith("/*", index):
            index = _behind(statement, "*/", index)
        elif statement[index] == "#" or statement.startswith("--", index):
            index = _behind(statement, "\n", index)
        else:
            break
    end = index
    while end < length and (statement[end].isalnum() or statement[end] == "_"):
        end += 1
    return statement[index:end].upper()


def _behind(statement: str, sign: str, index: int) -> int:
    found = statement.find(sign, index)
    return len(statement) if found < 0 else found + len(sign)

"""What the first words of a logged statement tell, without reading the rest of it."""

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

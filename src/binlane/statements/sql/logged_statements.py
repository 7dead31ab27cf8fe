"""Statements of a log: what their first words alone tell, and what a Query event does.

Most who meet statements only pass them on: what reads them is imported when it is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

from binlane.log.codec.charsets import charset_of
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.statement_text import statement_charset, statement_text
from binlane.log.codec.status_vars import decode_status_vars, sql_mode
from binlane.statements.sql.lexis import lexed_as
from binlane.statements.sql.servers import Dialect

if TYPE_CHECKING:
    from binlane.statements.sql.facts import StatementEffects, StatementFacts

# Possessive all through: what somebody logged must not be tried in more than one way.
_GAP: Final = rb"""(?: \s++ | \#[^\n]*+ | --[\s][^\n]*+ | /\*M?!\d*+
    | /\*(?!M?!)(?:[^*]|\*(?!/)|(?!))*+\*/ | (?!) )*+"""
_ROWS_ONLY: Final = re.compile(
    rb"""GAP (?: BEGIN | COMMIT | ROLLBACK | SAVEPOINT | RELEASE | XA
      | INSERT | UPDATE | DELETE | REPLACE | LOAD | SELECT | WITH | DO ) \b
    """.replace(b"GAP", _GAP),
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_TRANSACTIONS: Final = re.compile(
    rb"GAP (?: BEGIN (?! GAP NOT\b) | COMMIT | ROLLBACK | SAVEPOINT | RELEASE | XA ) \b".replace(
        b"GAP", _GAP
    ),
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
        (?: (?: AGGREGATE | (?: DEFINER | ALGORITHM ) \s*+=\s*+ \S++
              | SQL \s++ SECURITY \s++ \w++ ) GAP | (?!) )*+
        (?: USER | ROLE | VIEW | FUNCTION | PROCEDURE | EVENT | SERVER ) \b
    )""".replace(b"GAP", _GAP),
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_PASSWORD_SIGN: Final = re.compile(rb"IDENTIFIED", re.IGNORECASE)


def is_beside_tables(statement: bytes) -> bool:
    """True if a statement surely changes neither tables nor their rows, as logs have them.

    The function knows most kinds of such statements, not all. A trigger is none, since it defines
    additional effects of statements that change rows.
    """
    return _BESIDE_TABLES.match(statement) is not None


def is_about_rows_only(statement: bytes) -> bool:
    """True if a statement changes rows or transactions only."""
    return _ROWS_ONLY.match(statement) is not None


def is_about_transactions(statement: bytes) -> bool:
    """True if a statement only begins or ends a transaction or a part of one."""
    return _TRANSACTIONS.match(statement) is not None


def may_hold_password(statement: bytes) -> bool:
    """True if a password of an account may stand in a statement, or in a body that it has."""
    return not is_about_rows_only(statement) and _PASSWORD_SIGN.search(statement) is not None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStatement:
    """A statement of a log.

    Attributes:
        text: Text as logged; bytes that are no text are lone surrogates.
        database: The session's default database, likewise.
        sql_mode: The session's, as bits; 0 where the log does not tell.
        charset: The client's character set, where the text is to be read by it
            (`lexis.lexed_as`); else empty.
        server_charset: Character set of the server, of statements as of
            `followed_statement`; else None, also where the log does not tell.
    """

    text: str
    database: str
    sql_mode: int
    charset: str = ""
    server_charset: str | None = None

    @property
    def dialect(self) -> Dialect:
        """Dialect in which the text is read; the server that wrote the text is not known."""
        return _dialect(self.sql_mode, self.charset)

    def effects(self) -> StatementEffects:
        """Give the statement's effects, by its text."""
        return self.facts().effects

    def calls_stored_functions(self) -> bool:
        """True if the statement calls a function of its default database, or a loadable one."""
        from binlane.statements.sql.evaluation.functions import is_built_in  # noqa: PLC0415 - as below

        return any(
            use.database is None and (use.is_quoted or not is_built_in(use.name))
            for use in self.facts().functions
        )

    def facts(self) -> StatementFacts:
        """All that its text says."""
        # Most who meet statements only pass them on.
        from binlane.statements.sql.reading import read  # noqa: PLC0415

        return read(self.text, database=self.database, dialect=self.dialect)


_dialect: Final = cache(Dialect().with_mode)


def logged_statement(body: QueryEvent) -> LoggedStatement:
    """The statement of a Query event.

    Raises:
        CodecError: If the event's status variables are damaged.
    """
    return LoggedStatement(
        text=statement_text(body),
        database=body.database.decode("utf-8", "surrogateescape"),
        sql_mode=sql_mode(body) or 0,
        charset=lexed_as(statement_charset(body)),
    )


def followed_statement(body: QueryEvent) -> LoggedStatement:
    """Return the statement of a Query event with all that its effect on objects depends on.

    Raises:
        CodecError: If the event's status variables are damaged.
    """
    return replace(logged_statement(body), server_charset=_server_charset(body))


def _server_charset(body: QueryEvent) -> str | None:
    for variable in decode_status_vars(body.status_vars):
        if variable.name == "CHARSET" and isinstance(variable.value, tuple):
            return charset_of(variable.value[2])
    return None

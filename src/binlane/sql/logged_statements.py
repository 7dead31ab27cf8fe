"""A Query event → the statement of its session, and what that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.codec.query import QueryEvent
from binlane.codec.statement_text import statement_text
from binlane.codec.status_vars import sql_mode
from binlane.codec.transaction import GtidEvent
from binlane.codec.types import GtidExtraFlag
from binlane.sql.analysis import read
from binlane.sql.built_in_functions import is_built_in
from binlane.sql.effects import StatementEffects
from binlane.sql.facts import StatementFacts
from binlane.sql.sql_mode import Quoting, quoting

# Of a two-phase ALTER only the commit counts, which repeats the statement.
_NOT_DONE: Final = GtidExtraFlag.START_ALTER | GtidExtraFlag.ROLLBACK_ALTER


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedStatement:
    """A statement of a log.

    Attributes:
        text: As logged; bytes that are no text are lone surrogates.
        database: The session's default database, likewise.
        sql_mode: The session's, as bits; 0 where the log does not tell.
    """

    text: str
    database: str
    sql_mode: int

    @property
    def quoting(self) -> Quoting:
        """How the text is quoted."""
        return quoting(self.sql_mode)

    def effects(self) -> StatementEffects:
        """What it does, by its text."""
        return self.facts().effects

    def calls_stored_functions(self) -> bool:
        """Whether it calls a function of its default database, or a loadable one."""
        return any(
            use.database is None and (use.is_quoted or not is_built_in(use.name))
            for use in self.facts().functions
        )

    def facts(self) -> StatementFacts:
        """All that its text says."""
        return read(self.text, database=self.database, **self.quoting)


def logged_statement(body: QueryEvent) -> LoggedStatement:
    """The statement of a Query event.

    Raises:
        CodecError: If its status variables are damaged.
    """
    return LoggedStatement(
        text=statement_text(body),
        database=body.database.decode("utf-8", "surrogateescape"),
        sql_mode=sql_mode(body) or 0,
    )


def is_undone(body: GtidEvent) -> bool:
    """Whether the statement of a group has no effect: it is begun here only, or rolled back."""
    return bool((body.flags_extra or 0) & _NOT_DONE)

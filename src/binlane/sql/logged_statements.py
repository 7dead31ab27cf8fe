"""A Query event → the statement of its session, and what that does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from binlane.codec.query import QueryEvent
from binlane.codec.statement_text import statement_text
from binlane.codec.status_vars import sql_mode
from binlane.sql.dialect import Dialect

if TYPE_CHECKING:
    from binlane.sql.effects import StatementEffects
    from binlane.sql.facts import StatementFacts


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
    def dialect(self) -> Dialect:
        """How the text is read; whose server wrote it is not told."""
        return _dialect(self.sql_mode)

    def effects(self) -> StatementEffects:
        """What it does, by its text."""
        return self.facts().effects

    def calls_stored_functions(self) -> bool:
        """Whether it calls a function of its default database, or a loadable one."""
        from binlane.sql.built_in_functions import is_built_in  # noqa: PLC0415 - as below

        return any(
            use.database is None and (use.is_quoted or not is_built_in(use.name))
            for use in self.facts().functions
        )

    def facts(self) -> StatementFacts:
        """All that its text says."""
        # Most who meet statements only pass them on.
        from binlane.sql.reading import read  # noqa: PLC0415

        return read(self.text, database=self.database, dialect=self.dialect)


_dialect: Final = cache(Dialect().with_mode)


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

"""Notes 1592 among the source's own warnings: the source logs rows, and so has none to tell.

MariaDB and MySQL put them behind all other warnings of a statement, but before the one that tells
of changes that stay when the statement is rolled back (1196), and leave out what is beyond
max_error_count. They are there as long as the warnings of their statement are: on MySQL until the
next statement that is not about warnings, on MariaDB until the next one that uses tables or has
warnings itself (measured on MariaDB 10.11.19 and 11.8.6, MySQL 9.7.4).

And one of the source's own is left out: that rows of BLACKHOLE tables which are updated or deleted are
not in its log, of which binlogs of statements know nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.diagnostics import ABOUT_WARNINGS, limit_of, uses_no_tables
from binlane.live.gateway.judge import StatementReply
from binlane.log.codec.packets.results import Cell, ResultSet
from binlane.log.codec.types import Flavor
from binlane.statements.session.report import Note
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.tokens import tokenise

LIST: Final = "SHOW WARNINGS"
ERRORS: Final = "SHOW ERRORS"
COUNT: Final = "SHOW COUNT(*) WARNINGS"
_NOT_ROLLED_BACK: Final = b"1196"
_NO_ROWS: Final = frozenset((b"1105", b"1870"))
_NO_ROWS_TEXT: Final = b"Row events are not logged for "
_LEVEL: Final = b"Note"


class Warnings:
    """The notes that a client is to find among the warnings of its last statement.

    Attributes:
        are_changed: True if the client is to find other warnings than the source's.

    Args:
        flavor: Flavor of the source server.
    """

    def __init__(self, flavor: Flavor) -> None:
        self._is_mariadb = flavor is Flavor.MARIADB
        self._have()

    def _have(self, notes: tuple[Note, ...] = (), *, hides: bool = False) -> None:
        self._notes, self._hides = notes, hides
        self.are_changed = bool(notes or hides)

    @property
    def count(self) -> int:
        """The number of warnings to add to the source's count."""
        return len(self._notes) - self._hides

    def follow(
        self,
        facts: StatementFacts,
        replies: Sequence[StatementReply],
        notes: Sequence[Note],
        *,
        hides: bool = False,
    ) -> int:
        """Note a statement that the source has run; give the number of warnings to add to the source's.

        Args:
            facts: Parsed facts of the statement's text.
            replies: Replies of the source to the statement.
            notes: Notes of the model on the statement.
            hides: True if one of the source's warnings is about its own log of rows alone.
        """
        if not (notes or hides or self.are_changed):
            return 0
        told = tuple(note for note in notes if note.is_told)
        if told or hides or not self._keeps(facts, replies):
            self._have(told, hides=hides)
        return len(told) - hides

    def forget(self) -> None:
        """Note that another command ran, for example COM_INIT_DB or COM_RESET_CONNECTION."""
        self._have()

    def _keeps(self, facts: StatementFacts, replies: Sequence[StatementReply]) -> bool:
        """True if the warnings of the statement before are still there."""
        if any(reply.errno for reply in replies):
            return False
        if facts.verb in ABOUT_WARNINGS:
            return True
        return (
            self._is_mariadb
            and uses_no_tables(facts)
            and not any(reply.warnings for reply in replies)
        )

    def questions(self, facts: StatementFacts) -> tuple[str, ...]:
        """Give the queries to the source in the place of a statement; none if it is sent as it is."""
        if not (self._notes or self._hides):
            return ()
        if facts.verb == LIST:
            return LIST, COUNT
        return (COUNT,) if _counts_warnings(facts) else ()

    def answer(
        self, facts: StatementFacts, results: Sequence[ResultSet], errors_max: int | None = None
    ) -> RowsAnswer:
        """Answer a statement that asks for warnings.

        Args:
            facts: Parsed facts of the statement's text.
            results: Results of the queries of `questions`.
            errors_max: Value of the session's max_error_count; None where it is not known.
        """
        if not results[-1].rows:  # sql_select_limit holds for these statements too
            return RowsAnswer(results[0].heads, [])
        counted = int(results[-1].rows[0][0] or 0)
        if facts.verb != LIST:
            return RowsAnswer(results[0].heads, [[str(counted + self.count).encode()]])
        listed = results[0]
        is_full = counted > len(listed.rows)
        own = [row for row in listed.rows if not (self._hides and _is_of_rows(row))]
        rows = list(own) if is_full else _merged(own, self._notes)
        first, rows_max = limit_of(list(tokenise(facts.text, facts.dialect)))
        return RowsAnswer(listed.heads, rows[:errors_max][first:][:rows_max])


def _counts_warnings(facts: StatementFacts) -> bool:
    """True if a statement is SHOW COUNT(*) WARNINGS, and not ERRORS."""
    return facts.verb == "SHOW COUNT" and any(
        token.word == "WARNINGS" for token in tokenise(facts.text, facts.dialect)
    )


def _is_of_rows(row: tuple[bytes | None, ...]) -> bool:
    """True if a warning says that rows are not in the source's log."""
    return row[1] in _NO_ROWS and (row[2] or b"").startswith(_NO_ROWS_TEXT)


def _merged(
    rows: Sequence[tuple[bytes | None, ...]], notes: Sequence[Note]
) -> list[Sequence[Cell]]:
    own = [(_LEVEL, str(note.errno).encode(), note.message.encode()) for note in notes]
    place = len(rows)
    while place and rows[place - 1][1] == _NOT_ROLLED_BACK:
        place -= 1
    return [*rows[:place], *own, *rows[place:]]

"""Rows of SHOW WARNINGS and its like on a statement that binlane answered, or refused, by itself.

The source knows nothing of such a statement: its own warnings are of another statement, or of a question of
binlane's own. The rows are there as long as warnings are on the servers: on MySQL until the next statement
that is not about them, on MariaDB until the next one that uses tables or has warnings
itself (measured on MariaDB 10.11.19 and 11.8.6, MySQL 9.7.4).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from binlane.errors import Diagnostic
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.judge import StatementReply
from binlane.log.codec.packets.results import ColumnDefinition
from binlane.log.codec.types import Flavor
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tokens import SqlSyntaxError, Token, TokenKind, tokenise

HEADS: Final = ("Level", ColumnDefinition.integer("Code"), "Message")
ABOUT_WARNINGS: Final = frozenset(("SHOW WARNINGS", "SHOW ERRORS", "SHOW COUNT", "GET DIAGNOSTICS"))
"""Verbs of statements that leave warnings as they are."""

_ERROR: Final = "Error"
_SHOW: Final = re.compile(r"\s*(?:SHOW\b|SELECT\s*@@)", re.IGNORECASE)
_ABOUT: Final = re.compile(r"\s*SHOW\s+(?:WARNINGS|ERRORS|COUNT)\b", re.IGNORECASE)
_WORDS: Final = re.compile(rb"warning|error|diagnostics", re.IGNORECASE)
_SHOWS: Final = re.compile(
    r"SHOW (?:(?:WARNINGS|ERRORS)(?: LIMIT n(?: (?:,|OFFSET) n)?)?|COUNT \( \* \) (?:WARNINGS|ERRORS))"
)
_LENGTH_MAX: Final = 1024
_WITHOUT_TABLES: Final = frozenset(
    (
        *(StatementKind.SET, StatementKind.SELECT, StatementKind.DO, StatementKind.BEGIN),
        *(StatementKind.COMMIT, StatementKind.ROLLBACK, StatementKind.SAVEPOINT),
        *(StatementKind.ROLLBACK_TO, StatementKind.RELEASE_SAVEPOINT, StatementKind.XA),
        *(StatementKind.PREPARE, StatementKind.DEALLOCATE),
        *(StatementKind.CREATE_ROUTINE, StatementKind.DROP_ROUTINE, StatementKind.DROP_EVENT),
        *(StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE, StatementKind.DROP_DATABASE),
    )
)
"""Kinds of statements that leave MariaDB's warnings where they name no tables."""
_KEEPING_VERBS: Final = ("USE", "CREATE USER", "DROP USER")
"""First words of further statements that leave MariaDB's warnings where they name no tables."""
_COUNT: Final = re.compile(
    r"@@\s*(?:(?:session|local)\s*\.\s*)?(?P<level>warning|error)_count", re.IGNORECASE
)


class OwnDiagnostics:
    """The diagnostics of one session, where they are not the source's.

    Attributes:
        are_own: The client is to find these.
    """

    def __init__(self) -> None:
        self.are_own = False
        self._rows: tuple[Diagnostic, ...] = ()
        self._is_in_doubt = False
        self._own_text = ""

    def tell(self, rows: Sequence[Diagnostic]) -> None:
        """Take in the diagnostics of a statement that binlane has answered.

        Args:
            rows: Rows that SHOW WARNINGS is to list for it.
        """
        self.are_own, self._rows = True, tuple(rows)
        self._is_in_doubt = False

    def forget(self) -> None:
        """Note that the source has got another command: the rows to be listed are known there."""
        self.are_own, self._rows = False, ()

    def give_rows(self, statement: str, flavor: Flavor) -> None:
        """Note that binlane has answered a statement with rows.

        A SHOW uses no tables, nor does a SELECT of how many there are.
        """
        if _ABOUT.match(statement) is None and (
            flavor is Flavor.MYSQL or _SHOW.match(statement) is None
        ):
            self.tell(())

    def concern(self, statement: bytes) -> bool:
        """True if a statement is worth being looked at for an answer from here."""
        return (
            self.are_own and len(statement) <= _LENGTH_MAX and _WORDS.search(statement) is not None
        )

    def answer(self, statement: str, flavor: Flavor) -> RowsAnswer | str | None:
        """Answer a statement about the diagnostics.

        Returns:
            Rows, or the statement that the source is to run in its place; None where the statement is not
            about the diagnostics, or where the source has to say what is wrong with it.
        """
        try:
            tokens = _tokens(statement, flavor)
        except SqlSyntaxError:
            return None
        match [token.word for token in tokens[:2]]:
            case ["SHOW", _] if _SHOWS.fullmatch(_shape(tokens)):
                return shown(tokens, self._rows)
            case ["SELECT", *_]:
                return self._counted(statement, tokens)
            case ["GET", "DIAGNOSTICS"] | ["GET", "CURRENT"]:
                assigned = _assigned(tokens, self._rows)
                self._own_text = assigned or ""
                return assigned
        return None

    def runs(self, text: str, flavor: Flavor) -> bool:
        """Note that the source gets a statement.

        Returns:
            Whether it hangs on what comes of it if they stay, as `ran` has to tell.
        """
        if not self.are_own or (text and text == self._own_text):
            return False
        self._own_text = ""
        dialect = Dialect(flavor=flavor.value)
        is_read = 0 < len(text) <= _LENGTH_MAX
        facts = read(text, database="", dialect=dialect) if is_read else None
        self._is_in_doubt = flavor is Flavor.MARIADB and facts is not None and uses_no_tables(facts)
        if not self._is_in_doubt:
            self.forget()
        return self._is_in_doubt

    def ran(self, replies: Sequence[StatementReply]) -> None:
        """Note the replies to the statement that the source got."""
        if self._is_in_doubt and any(reply.errno or reply.warnings for reply in replies):
            self.forget()
        self._is_in_doubt = False

    def _counted(self, statement: str, tokens: Sequence[Token]) -> RowsAnswer | None:
        """The row of a SELECT of nothing but how many there are."""
        heads, cells = [], []
        for item in statement[tokens[0].end :].rstrip("; \n\t\0").split(","):
            found = _COUNT.fullmatch(item.strip())
            if found is None:
                return None
            heads.append(ColumnDefinition.integer(item.strip()))
            cells.append(str(len(_of(found["level"] == "warning", self._rows))))
        return RowsAnswer(heads, [cells])


def shown(tokens: Sequence[Token], rows: Sequence[Diagnostic]) -> RowsAnswer:
    """Answer SHOW WARNINGS, SHOW ERRORS or SHOW COUNT(*) of either.

    Args:
        tokens: Tokens of the statement's text.
        rows: Diagnostics that are to be listed.
    """
    is_count = tokens[1].word == "COUNT"
    has_all = any(token.word == "WARNINGS" for token in tokens)
    if is_count:
        name = "@@session.warning_count" if has_all else "@@session.error_count"
        count = len(_of(has_all, rows))
        return RowsAnswer([ColumnDefinition.integer(name)], [[str(count)]])
    first, rows_max = limit_of(tokens)
    listed = [(row.level, str(row.errno), row.text) for row in _of(has_all, rows)]
    return RowsAnswer(HEADS, listed[first:][:rows_max])


def limit_of(tokens: Sequence[Token]) -> tuple[int, int | None]:
    """Give the number of rows that are left out, and the most that are given; None is no limit."""
    numbers = [int(token.text) for token in tokens if token.kind is TokenKind.NUMBER]
    if not numbers:
        return 0, None
    if len(numbers) == 1:
        return 0, numbers[0]
    is_behind_offset = any(token.word == "OFFSET" for token in tokens)
    return (numbers[1], numbers[0]) if is_behind_offset else (numbers[0], numbers[1])


def uses_no_tables(facts: StatementFacts) -> bool:
    """True if a statement leaves MariaDB's warnings as they are, if it has none itself."""
    is_without = facts.effects.kind in _WITHOUT_TABLES or facts.verb.startswith(_KEEPING_VERBS)
    return is_without and not facts.tables


def _tokens(statement: str, flavor: Flavor) -> list[Token]:
    return list(tokenise(statement, Dialect(flavor=flavor.value)))


def _shape(tokens: Sequence[Token]) -> str:
    """A statement with its numbers as `n`, and without its end."""
    words = (
        "n" if token.kind is TokenKind.NUMBER else token.word or token.text
        for token in tokens
        if token.kind is not TokenKind.END and token.text != ";"
    )
    return " ".join(words)


def _of(has_all: bool, rows: Sequence[Diagnostic]) -> list[Diagnostic]:  # noqa: FBT001  # within
    return [row for row in rows if has_all or row.level == _ERROR]


def _assigned(tokens: Sequence[Token], rows: Sequence[Diagnostic]) -> str | None:
    """GET DIAGNOSTICS as the SET that gives its variables the same; None where no SET does."""
    words = [token.word or token.text for token in tokens if token.kind is not TokenKind.END]
    words = [word for word in words[1:] if word not in ("CURRENT", ";")][1:]
    values = {"NUMBER": str(len(rows))}
    if words[:1] == ["CONDITION"]:
        if not words[1].isdigit() or not 1 <= int(words[1]) <= len(rows):
            return None
        row, words = rows[int(words[1]) - 1], words[2:]
        text = f"_utf8mb4 0x{row.text.encode().hex()}" if row.text else "''"
        values = {"MESSAGE_TEXT": text, "MYSQL_ERRNO": str(row.errno)}
    items = []
    for at in range(0, len(words), 4):
        match words[at : at + 4]:
            case [target, "=", name, ","] | [target, "=", name] if (
                target.startswith("@") and not target.startswith("@@") and name in values
            ):
                items.append(f"{target} = {values[name]}")
            case _:
                return None
    return f"SET {', '.join(items)}" if items else None

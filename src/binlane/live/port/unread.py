"""Statements that a session may run before it is followed, so that many sessions need no model at all.

A session of which nothing is known runs statements that leave nothing behind that a model would have to know,
and, as long as all binlogs log everything as rows, those that do not bear on the binlogs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from binlane.live.gateway.judge import (
    NOTHING_LEFT,
    PASS,
    ClientStatement,
    Done,
    OkFields,
    Pass,
    Refuse,
    StatementReply,
    TextReading,
    Unseen,
    Verdict,
)
from binlane.live.port.binlog_variables import NAMES, concerns, shows
from binlane.live.port.context_reader import reads_diagnostics
from binlane.live.port.long_statements import LongTexts, turn_ends
from binlane.live.port.port_parts import FindParts, PortParts
from binlane.live.port.statement_refusals import not_known
from binlane.log.codec.client_text import is_lexed_alike
from binlane.statements.scope.definition import Definition
from binlane.statements.session.variables import plain
from binlane.statements.sql.facts import StatementFacts, VariableAssignment, VariableScope
from binlane.statements.sql.reading import Key, pattern, read
from binlane.statements.sql.servers import Dialect, LoggingMode
from binlane.statements.sql.statement_kinds import QUIET_KINDS, StatementKind
from binlane.statements.sql.stored import runs_nothing_stored
from binlane.statements.sql.tokens import LONG

_DIAGNOSTICS: Final = "GET DIAGNOSTICS"
"""Reads what the questions at the beginning of a model would take away."""
_WATCHED: Final = NAMES.keys() | {
    *("session_track_gtids", "session_track_system_variables", "session_track_state_change"),
    "pseudo_thread_id",
    *("pseudo_slave_mode", "pseudo_replica_mode", "skip_replication", "timestamp", "insert_id"),
    *("rand_seed1", "rand_seed2", "autocommit", "collation_database", "character_set_database"),
}
"""Variables that a session cannot set before it is followed."""
_ON: Final = frozenset(("1", "ON", "TRUE"))
_ASKED_FOR: Final = frozenset(("autocommit",))
"""Watched variables that are read from the source when following starts."""
_MAY_HIDE: Final = re.compile("[\udc80-\udcff]|[^\0-\x7f][\\\\`]")
"""In a text whose character set nobody knows: where a string or name may end elsewhere than in UTF-8.

What names the binlogs' variables has no other letters in swe7.
"""
_ALIKE_MAX: Final = 256


class NotFollowed:
    """A session without a model: nothing of its replies is looked at."""

    reading: TextReading | None = None
    hides_gtids: Final = False

    def done(self, replies: Sequence[StatementReply]) -> Done:
        """Leave nothing to be done."""
        del replies
        return NOTHING_LEFT

    def unseen(self) -> Unseen | None:
        """Let no statement pass without being judged."""
        return None

    def done_at_once(self, ok: OkFields) -> bool:
        """Leave nothing to be done."""
        del ok
        return True

    def local_data(self, data: bytes) -> None:
        """Do nothing, like all that follows."""

    def used(self, database: str) -> None:
        """Do nothing."""

    def stumbled(self) -> None:
        """Do nothing."""

    async def ended(self) -> None:
        """Do nothing."""


class Unread(NotFollowed):
    """A session before anybody follows it.

    Attributes:
        has_passed: True if statements have run that may have left anything behind.
        hides_tables: True if the session may have temporary tables that nobody knows.
        shared: State that sessions share; None as long as nobody has asked for it.

    Args:
        dialect: Dialect of the session's texts, as far as that is known.
        find_parts: Gives the state that sessions share.
        long_texts: Reader of the command's long texts.
    """

    def __init__(self, dialect: Dialect, find_parts: FindParts, long_texts: LongTexts) -> None:
        self.has_passed = self.hides_tables = False
        self._dialect = dialect
        self._find_parts = find_parts
        self._long_texts = long_texts
        self.shared: PortParts | None = None
        self._definitions: tuple[Definition, ...] = ()
        self._split = pattern(dialect).split
        self._passing: set[Key] = set()

    @property
    def reads_long_texts(self) -> bool:
        """Same as in `Judge`."""
        shared = self.shared
        return shared is None or any(
            one.logging_mode is LoggingMode.STATEMENT for one in shared.definitions()
        )

    @property
    def is_new(self) -> bool:
        """True if nothing has run that may have left anything behind."""
        return not (self.has_passed or self.hides_tables)

    async def find_parts(self) -> PortParts | None:
        """Give the state that sessions share; None where the source was not set up to be judged.

        Raises:
            StatementError: If the source cannot be asked.
        """
        self.shared = await self._find_parts()
        return self.shared

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Let a statement pass that nobody has to follow yet; None for others."""
        if len(statements) != 1:
            return None if statements else PASS
        text, is_prepared, is_complete, _ = statements[0]
        # A prepared one is told without its values, which change nothing of what is asked here.
        if (
            not (is_complete or (is_prepared and text))
            or len(text) > LONG
            or not _is_told_by_its_letters(text)
        ):
            return None
        shared, key = self.shared, tuple(self._split(text))
        if (
            key in self._passing
            and shared is not None
            and shared.definitions() is self._definitions
            and not shared.global_values()
        ):
            return PASS
        facts = _read(text, self._dialect)
        if _leaves_nothing(facts):
            return PASS
        if shared is None or not _concerns_nobody(facts, shared):
            return None
        self.has_passed = True
        if shared.definitions() is not self._definitions or len(self._passing) >= _ALIKE_MAX:
            self._definitions = shared.definitions()
            self._passing.clear()
        if facts.shape is not None:
            self._passing.add(key)
        return PASS

    def unseen(self) -> Unseen | None:
        """Let plain statements pass as long as every binlog has the rows of all that sessions do."""
        terms = None if self.shared is None else self.shared.holds_all_rows
        if terms is None or not terms():
            return None
        return Unseen(is_plain=True, terms=terms)

    async def concern_nobody(
        self, statements: Sequence[ClientStatement], shared: PortParts
    ) -> bool:
        """True if all statements of a command pass because no binlog can have more of them than rows."""
        if not all(one.is_complete for one in statements):
            return False
        texts = [one.text for one in statements]
        await self._long_texts.read(texts, "", self._dialect)
        for number, text in enumerate(texts):
            await turn_ends(number)
            if not _concerns_nobody(_read(text, self._dialect), shared):
                return False
        self.has_passed = True
        return True

    def unjudged(self, shared: PortParts) -> Verdict:
        """Let a command run of which nothing is known, or refuse it.

        Args:
            shared: State that the sessions of the port share.
        """
        # Every binlog may have the rows of all that the session does.
        if shared.global_values() or not are_unscoped_rows(shared.definitions()):
            return Refuse(not_known("binlane failed to find out what it would do", None))
        self.has_passed = self.hides_tables = True
        return Pass()


def only_reads_diagnostics(text: str, dialect: Dialect) -> bool:
    """True if a statement only reads the diagnostics of the last one, which beginning would take away.

    Args:
        text: Text of the client's statement.
        dialect: Dialect of the session's texts, as far as that is known.
    """
    if not _is_told_by_its_letters(text):
        return False
    facts = _read(text, dialect)
    return reads_diagnostics(facts) and _leaves_nothing(facts)


def _read(text: str, dialect: Dialect) -> StatementFacts:
    return read(text, database="", dialect=dialect)


def are_unscoped_rows(definitions: Iterable[Definition]) -> bool:
    """True if all binlogs log everything, as rows."""
    return all(one.logging_mode is LoggingMode.ROW and one.scope.is_unscoped for one in definitions)


def holds_all_rows(
    definitions: Callable[[], tuple[Definition, ...]], values: Callable[[], Mapping[str, str]]
) -> Callable[[], bool]:
    """Make a function that is true as long as all binlogs log everything as rows, and nothing else is set.

    Args:
        definitions: Gives the binlogs, the same tuple as long as they are the same.
        values: Gives the values that the binlogs' variables were given.
    """
    known: tuple[Definition, ...] | None = None
    is_held = False

    def holds() -> bool:
        nonlocal known, is_held
        now = definitions()
        if now is not known:
            known, is_held = now, are_unscoped_rows(now)
        return is_held and not values()

    return holds


def _is_told_by_its_letters(text: str) -> bool:
    """True if a text has the same meaning in any character set."""
    return text.isascii() or _MAY_HIDE.search(text) is None


def _leaves_nothing(facts: StatementFacts) -> bool:
    """True if a session may begin with a statement without the model knowing of it."""
    effects = facts.effects
    if facts.error is not None or effects.stopped_at is not None:
        return False
    if not is_lexed_alike(facts.text):
        return False
    if effects.kind is StatementKind.SET:
        names = {one.name for one in facts.assignments if not _turns_autocommit_on(one)}
        is_heard = names.isdisjoint(_WATCHED) and not concerns(facts, is_first=True)
        return is_heard and runs_nothing_stored(facts)
    return (
        (effects.kind in QUIET_KINDS or facts.verb == _DIAGNOSTICS)
        and not concerns(facts, is_first=True)
        and not shows(facts)
        and not effects.writes
        and not facts.has_into
        and not facts.statement_assignments
        and runs_nothing_stored(facts)
    )


def _turns_autocommit_on(assignment: VariableAssignment) -> bool:
    """True if an assignment ends at most a transaction of reads; autocommit is asked for when following starts."""
    is_own = assignment.scope not in (VariableScope.GLOBAL, VariableScope.PERSIST)
    return is_own and assignment.name == "autocommit" and plain(assignment.value) in _ON


def _concerns_nobody(facts: StatementFacts, shared: PortParts) -> bool:
    """True if no binlog could refuse a statement, or have anything but its rows.

    That is so where all binlogs log everything as rows, and the session does not say otherwise.
    """
    if shared.global_values() or not are_unscoped_rows(shared.definitions()):
        return False
    names = {one.name for one in (*facts.assignments, *facts.statement_assignments)}
    return (
        facts.effects.stopped_at is None
        and _MAY_HIDE.search(facts.text) is None
        and names.isdisjoint(_WATCHED - _ASKED_FOR)
        and not concerns(facts, is_first=True)
        and not shows(facts)
    )

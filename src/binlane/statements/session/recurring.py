"""Statements that come again: the effects of one are those of another of its shape in the same state.

Most statements of an application differ from earlier ones in their literals alone, and run in the same state
of the session. Such a statement is carried out once; its events, and the transaction's state behind it, are
kept and repeated with the text of the next one. Kept are only effects that no literal can change, and none
that have a place in the text: notes, ways, errors that nobody stated. SET, USE, SHOW, and queries whose
literals decide something, come again with the same text alone.

A state of the session is found by all values that statements depend on, as long as the session goes on by
itself; a kept statement leads from one state to the next without looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from binlane.statements.policy.refusals import NO_OUTCOME, Outcome
from binlane.statements.scope.transaction import NO_WRITES, TransactionWrites
from binlane.statements.session.caches import BinlogCaches
from binlane.statements.session.log_events import Body
from binlane.statements.session.report import BinlogResult, StatementResult
from binlane.statements.session.resolved_shape import (
    ResolvedShape,
    has_alike_effects,
    may_come_as_text,
    shape_of,
)
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_template import (
    CacheFlags,
    EventsTemplate,
    EventTemplates,
    ExpectedResult,
    StartState,
    StatementTemplate,
    TemplateKey,
)
from binlane.statements.session.transaction import Transaction
from binlane.statements.session.variables import Variables
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import Key, key_of, pattern
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tokens import LONG

KEPT_MAX: Final = 4_096
"""Statements that are kept, and states; then all begins anew."""

TEXTS_MAX: Final = 512
"""Statements that are kept by their texts; then all these begin anew."""
_TEXT_MAX: Final = 1_024
"""Characters of a text by which a statement is kept."""
_ENDS: Final = frozenset((StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK))
"""Statements that end the transaction before them; some SETs do, too."""


class Recurring:
    """The statements of one session that come again; their kept effects serve all sessions.

    Attributes:
        latest: Template of the last statement, if it was made by that one.
    """

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._at: StartState | None = None
        self._binlogs: tuple[BinlogCaches, ...] = ()
        self._is_ahead = False
        self._split: tuple[str, Dialect, Key] | None = None
        self._expected: ExpectedResult | None = None
        # Status variables with which the last statement ran, if that changed them.
        self._status: bytes | None = None
        self.latest: StatementTemplate | None = None

    @property
    def place(self) -> StartState | None:
        """State of the session, if nothing has led out of it since it was found."""
        place = self._at
        return None if place is None or place.version is not self._state.objects.version else place

    def shape(self, facts: StatementFacts) -> ResolvedShape:
        """Return the resolved shape of a statement of the client."""
        state = self._state
        return shape_of(facts, state.opening(state.database))

    def expect(self, text: str, outcome: Outcome) -> ExpectedResult | None:
        """Return the effects that a statement will have, if they are known; see `again`."""
        is_kept = len(text) <= LONG and self._may_come_again(outcome)
        place = (self._at or self.find()) if is_kept else None
        if place is None or place.version is not self._state.objects.version:
            return None
        kept = self._kept(place, text, outcome)
        if kept is None:
            return None
        found = self._expected = ExpectedResult(text, kept.told(self._binlogs, text), kept)
        return found

    def _may_come_again(self, outcome: Outcome) -> bool:
        """True if an outcome leads to the same, whatever tables have got or lost rows."""
        is_told = outcome.rows == 0 and self._state.objects.filled is not None
        return not (is_told or outcome.is_proven_empty)

    def _kept(self, place: StartState, text: str, outcome: Outcome) -> StatementTemplate | None:
        """Return the template of a statement; None if it is not known."""
        last = self._split
        if last is None or last[0] != text or last[1] is not place.dialect:
            last = self._split = (text, place.dialect, key_of(text, place.dialect))
        # Else the statement was foreseen, and is run now.
        key: TemplateKey = last[2]
        own: TemplateKey = (text,)
        if outcome is not NO_OUTCOME:
            key, own = _of_outcome(last[2], outcome), _of_outcome((text,), outcome)
        kept = place.templates.get(key)
        return place.texts.get(own) if kept is None and place.texts else kept

    def again(self, text: str, outcome: Outcome) -> StatementResult | Attempt | None:
        """Repeat the known effects of a statement.

        Args:
            text: Text as the client sends it, without white space and semicolons around it.
            outcome: The stated outcome of the statement.

        Returns:
            The statement's result. If its effects are not known, an attempt that is to be told of its
            execution; None in states in which little comes again. Then the session goes on by itself.
        """
        self.latest = None
        is_kept = len(text) <= LONG and self._may_come_again(outcome)
        place = (self._at or self.find()) if is_kept else None
        if place is None:
            self.leave()
            return None
        if place.version is not self._state.objects.version:
            self.leave()
            return self.again(text, outcome)
        kept = self._kept(place, text, outcome)
        if kept is None:
            self.leave()
            assert self._split is not None, "it was looked for"
            return Attempt(self, place, self._split[2], text, outcome)
        expected, self._expected = self._expected, None
        if expected is None or expected.template is not kept or expected.text != text:
            result = kept.told(self._binlogs, text)
        else:
            result = expected.result
        self._is_ahead = True
        self._at = kept.after
        self._status = None if kept.settings is None else self._state.variables.status_vars()
        kept.again(self._state, self._binlogs, text)
        return result

    def plain(self, text: str) -> StatementTemplate | None:
        """Return the known effect of a statement that leaves the session as it is, or logs nothing now.

        Args:
            text: The statement's text, as for `again`.

        Returns:
            None for other statements, and where nothing of the session is logged.
        """
        place = self._at
        if place is None or place.version is not self._state.objects.version or len(text) > LONG:
            return None
        key = tuple(place.split(text))
        kept = place.templates.get(key)
        if kept is None or not kept.is_foreseen or not place.is_logging:
            self._split = (text, place.dialect, key)  # what it does is asked next
            return None
        return kept

    def repeat(self, kept: StatementTemplate, text: str) -> None:
        """Take in that a statement has run which `plain` gave."""
        self._state.number += 1
        self._is_ahead, self._expected, self._status = True, None, None
        if not kept.is_unchanging:
            self._at = kept.after
            kept.again(self._state, self._binlogs, text)
            for _, numbers in kept.appended:
                for number in numbers:
                    self._binlogs[number].transaction_cache.mark(self._state.number)

    def passed(self, number: int) -> None:
        """Take in that statements have run behind which the session is where it is, whatever they did.

        Args:
            number: Number of the last one.
        """
        self._state.number = number
        self._is_ahead, self._expected, self._status = True, None, None

    def leave(self) -> None:
        """Let the session go on by itself, or as another one from here on."""
        self._at = self._expected = None
        if not self._is_ahead:
            return
        self._is_ahead = False
        state = self._state
        # The changes so far are shared between statements, so they are copied.
        state.transaction.changes = state.transaction.changes.copy()
        status = state.variables.status_vars() if self._status is None else self._status
        for binlog in self._binlogs:
            binlog.status_vars = status

    def find(self) -> StartState | None:
        """Return the state of the session; None if it is a state in which little comes again."""
        state = self._state
        transaction = state.transaction
        variables = state.variables
        safety = state.safety
        self._binlogs = tuple(state.binlogs.values())
        if (
            transaction.xid is not None
            or transaction.created is not None
            or transaction.unknown
            or state.compresses
            or state.locked_tables is not None
            or state.is_read_locked
            or state.unknown_programs
            or state.temporary.names
            or state.empty_tables
            or variables.settings.finds_last_by_null
            or any([binlog.statement_cache.events for binlog in self._binlogs])  # noqa: C419
        ):
            return None
        changes = transaction.changes
        key = (
            *(state.server, state.assume_engine, state.knows_accounts),
            *(state.database, state.objects.version, variables.is_format_set, variables.connection),
            *(frozenset(variables.values.items()), frozenset(variables.global_values.items())),
            None if safety is None else safety.token,
            state.identity,
            *(transaction.is_begun, transaction.is_active, bool(transaction.savepoints)),
            *(transaction.own, transaction.coming),
            *[(name, use.has_two_phases, use.is_changed) for name, use in changes.engines.items()],
            changes.changed_nontransactional,
            changes.changed_nontransactional_temporary,
            changes.changed_temporary_tables,
            # A refusal depends on the sets of binlogs that recorded some write, and not another.
            None
            if safety is None
            else frozenset([one.binlogs for one in safety.transaction.writes]),
            *[
                (
                    *(binlog.name, binlog.is_registered, binlog.has_unsafe_content),
                    *(binlog.keeps_transaction, not binlog.transaction_cache.events),
                )
                for binlog in self._binlogs
            ],
        )
        place = _known.places.get(key)
        if place is None:
            _known.grow()
            place = _known.places[key] = StartState(
                version=state.objects.version,
                dialect=variables.settings.dialect,
                split=pattern(variables.settings.dialect).split,
                is_logging=state.is_logging,
                has_savepoints=bool(transaction.savepoints),
                is_active=transaction.is_active,
            )
        self._at = place
        return place


def _of_outcome(key: Key, outcome: Outcome) -> TemplateKey:
    if outcome is NO_OUTCOME or (outcome.rows is None and outcome.error is None):
        return key
    return outcome.rows, outcome.error, key


class _Known:
    """The known states of all sessions.

    Attributes:
        places: States of sessions, by all values that statements depend on.
    """

    def __init__(self) -> None:
        self.places: dict[tuple[object, ...], StartState] = {}
        self._size = 0
        self._texts = 0

    def grow(self) -> None:
        """Count one more effect; forget all others if these are too many."""
        if self._size >= KEPT_MAX:
            places, self.places, self._size = self.places, {}, 0
            # A session may be in one of them.
            for place in places.values():
                place.templates.clear()
                place.texts.clear()
        self._size += 1

    def grow_by_text(self) -> None:
        """Count one more effect that is kept by a text; forget all others of these if they are too many."""
        if self._texts >= TEXTS_MAX:
            self._texts = 0
            for place in self.places.values():
                place.texts.clear()
        self._texts += 1


_known: Final = _Known()


class Attempt:
    """A statement that is carried out for the first time in some state."""

    def __init__(
        self, recurring: Recurring, place: StartState, key: Key, text: str, outcome: Outcome
    ) -> None:
        self._recurring = recurring
        self._place = place
        self._key = key
        self._text = text
        self._outcome = outcome
        self._is_by_text = False
        self._settings: Variables | None = None
        self._database = ""
        self._transaction = Transaction()
        self._binlogs: list[tuple[list[Body], CacheFlags]] = []

    def begins(self, state: SessionState, facts: StatementFacts) -> bool:
        """True if the effects of a statement can be kept.

        Args:
            state: The session, before the statement is carried out.
            facts: Facts of the statement's text.
        """
        self._is_by_text = facts.shape is None
        is_setting = may_come_as_text(facts)
        if (is_setting or facts.effects.kind in _ENDS) and self._place.has_savepoints:
            return False
        if self._is_by_text and len(self._text) > _TEXT_MAX:
            return False
        self._database = state.database
        if is_setting:
            self._settings = state.variables.copy()
        elif not self._has_alike_effects(state, facts):
            return False
        if state.safety is not None:
            state.safety.added = NO_WRITES
        self._transaction = state.transaction.copy()
        self._binlogs = [
            (one.transaction_cache.events.copy(), _flags(one)) for one in state.binlogs.values()
        ]
        return True

    def _has_alike_effects(self, state: SessionState, facts: StatementFacts) -> bool:
        """True if statements of a shape do the same; of those without one that is asked of queries alone."""
        if self._is_by_text and facts.effects.kind is not StatementKind.SELECT:
            return False
        shape = self._recurring.shape(facts)
        if shape.may_recur is None:
            shape.may_recur = has_alike_effects(shape, state.objects)
        return shape.may_recur

    def was(self, state: SessionState, result: StatementResult) -> None:
        """Keep the statement's effects, if they do not depend on its text."""
        error = result.error
        if result != StatementResult(error=error, binlogs=result.binlogs):
            return
        if error is not None and (not error.is_stated or error.why or error.others):
            return
        makers = EventTemplates(self._text, state)
        written: list[tuple[BinlogResult, EventsTemplate]] = []
        appended: list[EventsTemplate] = []
        cleared: list[int] = []
        flags: list[tuple[int, CacheFlags]] = []
        for number, (name, binlog) in enumerate(state.binlogs.items()):
            events = binlog.transaction_cache.events
            waiting, flags_before = self._binlogs[number]
            told = result.binlogs[name]
            if waiting and not events:
                cleared.append(number)
            elif events[: len(waiting)] != waiting:
                return
            now = makers.made(told.bodies, waiting)
            later = makers.made(events[len(waiting) :])
            if now is None or later is None:
                return
            written.append((told._replace(bodies=(), runs=()), now))
            appended.append(later)
            if _flags(binlog) != flags_before:
                flags.append((number, _flags(binlog)))
        after = self._recurring.find()
        if after is None:
            return
        appended_groups = [group for group in _groups(appended) if group[0].constant]
        transaction = state.transaction
        writes = _added(state)
        is_same = transaction == self._transaction
        has_waiting = any(waiting for waiting, _ in self._binlogs)
        has_more = bool(appended_groups or cleared or flags or has_waiting or writes is not None)
        is_written = any(now.constant for _, now in written)
        is_silent = not (is_written or appended_groups or cleared or flags or error)
        found = StatementTemplate(
            is_unchanging=after is self._place and is_same and not has_more and error is None,
            is_silent=is_silent,
            names=tuple(state.binlogs),
            error=error,
            result=None if is_written else result,
            written=_groups(written),
            appended=appended_groups,
            cleared=cleared,
            flags=flags,
            transaction=None if is_same else transaction.copy(),
            writes=writes,
            before=self._place,
            after=after,
            settings=self._changed_settings(state),
        )
        key, templates = self._key, self._place.templates
        if self._is_by_text:
            key, templates = (self._text,), self._place.texts
            _known.grow_by_text()
        else:
            _known.grow()
        self._recurring.latest = templates[_of_outcome(key, self._outcome)] = found

    def _changed_settings(self, state: SessionState) -> tuple[Variables, str] | None:
        """Return variables and default database, if the statement may change them, and did."""
        if (self._settings or state.variables, self._database) == (state.variables, state.database):
            return None
        return state.variables.copy(), state.database


def _added(state: SessionState) -> TransactionWrites | None:
    """Return a statement's addition to the writes of its transaction; None if that has no writes now."""
    safety = state.safety
    return None if safety is None or not safety.transaction.writes else safety.added


_Alike = TypeVar("_Alike")


def _flags(binlog: BinlogCaches) -> CacheFlags:
    return binlog.is_registered, binlog.has_unsafe_content, binlog.keeps_transaction


def _groups(each: Sequence[_Alike]) -> list[tuple[_Alike, list[int]]]:
    """Group binlogs with equal values: each value with the numbers of its binlogs."""
    groups: list[tuple[_Alike, list[int]]] = []
    for number, one in enumerate(each):
        numbers = next((numbers for other, numbers in groups if other == one), None)
        if numbers is None:
            groups.append((one, [number]))
        else:
            numbers.append(number)
    return groups

"""Statements that come again: the effects of one are those of another of its shape in the same state.

Most statements of an application differ from earlier ones in their literals alone, and run in the same state
of the session. Such a statement is carried out once; its events, and the transaction's state behind it, are
kept and repeated with the text of the next one. Kept are only effects that no literal can change, and none
that have a place in the text: notes, ways, errors that nobody stated.

A state of the session is found by all values that statements depend on, as long as the session goes on by
itself; a kept statement leads from one state to the next without looking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from binlane.statements.policy.refusals import NO_OUTCOME, Outcome
from binlane.statements.scope.transaction import TransactionWrites
from binlane.statements.session.alike_effects import has_alike_effects
from binlane.statements.session.caches import BinlogCaches
from binlane.statements.session.log_events import Body
from binlane.statements.session.report import BinlogResult, StatementResult
from binlane.statements.session.resolved_shape import ResolvedShape, shape_of
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
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import Key, key_of, pattern
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.tokens import LONG

KEPT_MAX: Final = 4_096
"""Statements that are kept, and states; then all begins anew."""

_ENDS: Final = frozenset((StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK))
"""Statements that end the transaction before them."""


class Recurring:
    """The statements of one session that come again; their kept effects serve all sessions."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._at: StartState | None = None
        self._binlogs: tuple[BinlogCaches, ...] = ()
        self._is_ahead = False
        self._split: tuple[str, Dialect, Key] | None = None
        self._expected: ExpectedResult | None = None

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
        kept = place.templates.get(self._key(text, place.dialect, outcome))
        if kept is None:
            return None
        found = self._expected = ExpectedResult(text, kept.told(self._binlogs, text), kept)
        return found

    def _may_come_again(self, outcome: Outcome) -> bool:
        """True if an outcome leads to the same, whatever tables have got or lost rows."""
        is_told = outcome.rows == 0 and self._state.objects.filled is not None
        return not (is_told or outcome.is_proven_empty)

    def _key(self, text: str, dialect: Dialect, outcome: Outcome) -> TemplateKey:
        """Return the parts that are equal in all statements with the same effects in one state."""
        last = self._split
        if last is not None and last[0] == text and last[1] is dialect:
            # The statement was foreseen, and is run now.
            key = last[2]
        else:
            key = key_of(text, dialect)
            self._split = (text, dialect, key)
        if outcome is NO_OUTCOME or (outcome.rows is None and outcome.error is None):
            return key
        return outcome.rows, outcome.error, key

    def again(self, text: str, outcome: Outcome) -> StatementResult | Attempt | None:
        """Repeat the known effects of a statement.

        Args:
            text: Text as the client sends it, without white space and semicolons around it.
            outcome: The stated outcome of the statement.

        Returns:
            The statement's result. If its effects are not known, an attempt that is to be told of its
            execution; None in states in which little comes again. Then the session goes on by itself.
        """
        is_kept = len(text) <= LONG and self._may_come_again(outcome)
        place = (self._at or self.find()) if is_kept else None
        if place is None:
            self.leave()
            return None
        if place.version is not self._state.objects.version:
            self.leave()
            return self.again(text, outcome)
        key = self._key(text, place.dialect, outcome)
        kept = place.templates.get(key)
        if kept is None:
            self.leave()
            return Attempt(self, place, key, text)
        expected, self._expected = self._expected, None
        if expected is None or expected.template is not kept or expected.text != text:
            result = kept.told(self._binlogs, text)
        else:
            result = expected.result
        self._is_ahead = True
        self._at = kept.after
        kept.again(self._state, self._binlogs, text)
        return result

    def unchanging(self, text: str) -> StatementTemplate | None:
        """Return the known effect of a statement that leaves the session as it is; None for others.

        Args:
            text: The statement's text, as for `again`.

        Returns:
            None also where nothing of the session is logged.
        """
        place = self._at
        if place is None or place.version is not self._state.objects.version or len(text) > LONG:
            return None
        key = tuple(place.split(text))
        kept = place.templates.get(key)
        if kept is None or not (kept.is_unchanging and place.is_logging):
            self._split = (text, place.dialect, key)  # what it does is asked next
            return None
        return kept

    def stay(self) -> None:
        """Count a statement that `unchanging` gave and that has run: nothing else is new."""
        self._state.number += 1
        self._is_ahead, self._expected = True, None

    def leave(self) -> None:
        """Let the session go on by itself, or as another one from here on."""
        self._at = self._expected = None
        if not self._is_ahead:
            return
        self._is_ahead = False
        state = self._state
        # The changes so far are shared between statements, so they are copied.
        state.transaction.changes = state.transaction.changes.copy()
        status = state.variables.status_vars()
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
            or variables.is_on("sql_auto_is_null", default=False)
            or any(binlog.statement_cache.events for binlog in self._binlogs)
        ):
            return None
        changes = transaction.changes
        key = (
            *(state.server, state.assume_engine, state.knows_accounts),
            *(state.database, state.objects.version, variables.is_format_set, variables.connection),
            *(frozenset(variables.values.items()), frozenset(variables.global_values.items())),
            None if safety is None else safety.definitions,
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
            )
        self._at = place
        return place


class _Known:
    """The known states of all sessions.

    Attributes:
        places: States of sessions, by all values that statements depend on.
    """

    def __init__(self) -> None:
        self.places: dict[tuple[object, ...], StartState] = {}
        self._size = 0

    def grow(self) -> None:
        """Count one more effect; forget all others if these are too many."""
        if self._size >= KEPT_MAX:
            places, self.places, self._size = self.places, {}, 0
            # A session may be in one of them.
            for place in places.values():
                place.templates.clear()
        self._size += 1


_known: Final = _Known()


class Attempt:
    """A statement that is carried out for the first time in some state."""

    def __init__(
        self, recurring: Recurring, place: StartState, key: TemplateKey, text: str
    ) -> None:
        self._recurring = recurring
        self._place = place
        self._key = key
        self._text = text
        self._transaction = Transaction()
        self._binlogs: list[tuple[list[Body], CacheFlags]] = []

    def begins(self, state: SessionState, facts: StatementFacts) -> bool:
        """True if the effects of a statement can be kept.

        Args:
            state: The session, before the statement is carried out.
            facts: Facts of the statement's text.
        """
        if facts.shape is None:
            return False
        if facts.effects.kind in _ENDS and self._place.has_savepoints:
            return False
        shape = self._recurring.shape(facts)
        if shape.may_recur is None:
            shape.may_recur = has_alike_effects(shape, state.objects)
        if shape.may_recur:
            if state.safety is not None:
                state.safety.added = TransactionWrites()
            self._transaction = state.transaction.copy()
            self._binlogs = [
                (one.transaction_cache.events.copy(), _flags(one)) for one in state.binlogs.values()
            ]
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
            written.append((replace(told, bodies=(), runs=()), now))
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
        _known.grow()
        self._place.templates[self._key] = StatementTemplate(
            is_unchanging=after is self._place and is_same and not has_more and error is None,
            names=tuple(state.binlogs),
            error=error,
            result=None if any(now.constant for _, now in written) else result,
            written=_groups(written),
            appended=appended_groups,
            cleared=cleared,
            flags=flags,
            transaction=None if is_same else transaction.copy(),
            writes=writes,
            after=after,
        )


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

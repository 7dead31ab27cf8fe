"""Statements of followed sessions that pass unseen: on which terms, and how they are followed later.

A statement that is like others has the same effect in every session that is in the same place. One that makes
no group yet need not be told of before it is sent: it may pass, and is followed when the session is next looked
at, before anything else happens in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from binlane.live.gateway.judge import (
    PassedEnds,
    PlanPiece,
    RepeatedStatement,
    SeenStatement,
    Unseen,
    UnseenEnds,
)
from binlane.live.gateway.value_texts import quotes_strings
from binlane.live.port.alike_statements import (
    AlikeStatements,
    FilledPlans,
    Repeated,
    SentTemplate,
)
from binlane.live.port.attribution_messages import AttributionSender
from binlane.live.port.followed_session import FollowedSession
from binlane.statements.session.log_events import SOURCE_LOG
from binlane.statements.session.statement_template import StartState, StatementTemplate

_NOTHING: Final = PlanPiece(b"", b"")
"""Of a statement that has nothing in plans."""


class Place(NamedTuple):
    """A place in which statements that are alike have the same effects, in whichever session.

    Attributes:
        state: State of the model, which also says if a transaction is open.
        values: Values that statements are logged with, as of `ContextValues.alike`.
        terms: Terms on which the binlogs and the source's objects are as they were.
        is_tracked: True if `Attributions` is told of the session's groups.
    """

    state: StartState
    values: object
    terms: Callable[[], bool]
    is_tracked: bool


class KnownEffect(NamedTuple):
    """The effect of statements in one place that make no group yet.

    Attributes:
        of_model: Effect that they have on the model.
        sent: Template by which such statements are sent.
        quotes_strings: True if strings among the values of such statements are logged in quotes.
    """

    of_model: StatementTemplate
    sent: SentTemplate
    quotes_strings: bool


class UnseenStatements:
    """Says which statements of a session may pass unseen, and follows those that have.

    Args:
        session: The client's session, as it is followed.
        alike: Sends and follows the session's statements by their templates.
    """

    def __init__(self, session: FollowedSession, alike: AlikeStatements) -> None:
        self._session = session
        self._alike = alike

    def terms(self, one: Repeated) -> Unseen | None:
        """Give the terms on which known statements may pass behind one that has run as others; None for none."""
        place = self._place()
        if place is None:
            return None
        last = self._seen(one, place)
        return Unseen(
            is_plain=False, terms=place.terms, place=place, last=last, ends=self._ends(place)
        )

    @property
    def _messages(self) -> AttributionSender | None:
        """The connection by which a kernel can tell of groups, too; None where the journal is written here."""
        messages = self._session.shared.attributions
        return messages if isinstance(messages, AttributionSender) else None

    def _ends(self, place: Place) -> UnseenEnds | None:
        """Give the terms on which whole transactions may pass; None in a transaction, or where that is not said."""
        session = self._session
        messages, tracking, values = self._messages, session.tracking, session.reader.values
        if not place.is_tracked or messages is None or values is None:
            return None
        is_at_rest = not (session.is_in_transaction or place.state.is_active)
        if not (is_at_rest and tracking.planning.is_clear and tracking.is_settled):
            return None
        if session.model.waits:
            return None
        number, told = session.model.session.state.number, tracking.last_told
        return UnseenEnds(messages, tracking.thread_id, values.thread_id, number, told)

    def _place(self) -> Place | None:
        """Give the place of the session; None where it is in a state of its own, or something waits to be done."""
        session = self._session
        reader, tracking = session.reader, session.tracking
        state, values = session.model.session.recurring.place, reader.values
        if (
            state is None
            or values is None
            or not session.shared.catalog.is_reached
            or session.shared.definitions() is not session.definitions
            or tracking.spoils
            or session.warnings.are_changed
            or reader.is_dirty
            or reader.clock.fixed is not None
            or reader.clock.held is not None
        ):
            return None
        terms = session.shared.standing.now()
        return Place(state, values.alike, terms, tracking.is_on)

    def repeat(self, statements: Sequence[RepeatedStatement], ended: PassedEnds | None) -> None:
        """Follow statements that have run, each as one that was like others in its place.

        Args:
            statements: The statements, with effects of `terms`.
            ended: Transactions that have passed as wholes before; None for none.
        """
        session = self._session
        if ended is not None:
            session.model.passed(ended.number)
            session.tracking.last_told = ended.told
        for text, effect, insert_id in statements:
            self._alike.repeat(self.go_on(text, effect), insert_id)
        session.is_in_transaction = session.model.session.state.transaction.is_active

    def go_on(self, text: str, effect: object) -> Repeated:
        """Give a statement that was sent, as one that was like others in its place.

        Args:
            text: Text of the client's statement.
            effect: Effect that such statements have, as told by `terms`.
        """
        assert isinstance(effect, KnownEffect), "it was given"
        (of_model, sent, _), session = effect, self._session
        values = session.reader.values
        assert values is not None, "the session was in a place"
        event = sent.event_of(text, values.thread_id)
        assert event is not None, "the text is plain"
        number, context, plans = session.model.session.state.number + 1, None, None
        if sent.end is not None:
            plans = self._alike.ended(sent)
            assert plans is not None, "its plan was put together"
        elif sent.hole is not None:
            plans = FilledPlans(sent, event)
        if sent.waiting is not None and sent.event is not None:
            context = self._alike.context_of(sent.waiting, values)
        # In a third of the time of `Repeated(…)`.
        return tuple.__new__(Repeated, (text, sent, of_model, number, plans, context, event))

    def _seen(self, one: Repeated, behind: Place) -> SeenStatement | None:
        """Say of a statement that has run how others pass that are like it; None if they have to be judged.

        Args:
            one: The statement, as the session has sent it.
            behind: Place of the session behind the statement.
        """
        sent, effect, values = one.sent, one.effect, self._session.reader.values
        assert values is not None, "the session is in a place"
        before = behind._replace(state=effect.before)
        known = KnownEffect(effect, sent, quotes_strings(values.client_charset))
        turns = effect.before.is_active is not behind.state.is_active
        if one.plans is not None:
            if not (_can_end(known) and behind.is_tracked and self._messages is not None):
                return None
            piece = partial(_piece, sent)
            return SeenStatement(before, known, sent.has_rows, sent.is_update, turns, piece)
        if sent.waiting is None and effect.stays_at(behind.state):
            return SeenStatement(before) if effect.before is behind.state else None
        if not behind.is_tracked or not (sent.waiting is not None or effect.is_silent):
            return None
        return SeenStatement(before, known, sent.has_rows, sent.is_update, turns)


def _can_end(effect: KnownEffect) -> bool:
    """True if a kernel may put plans together for a statement that makes a group."""
    sent = effect.sent
    return sent.end is not None or (sent.piece is not None and effect.quotes_strings)


def _piece(ending: SentTemplate, effect: object) -> PlanPiece | None:
    """Give what a statement has in the plans of transactions, as of `SeenStatement.piece`.

    Args:
        ending: Template of the statement that ends the transactions.
        effect: Effect of the statement, as told by `terms`.
    """
    assert isinstance(effect, KnownEffect), "it was given"
    sent = effect.sent
    if sent is ending:
        return sent.piece or _NOTHING
    if sent.waiting is None:
        return _NOTHING if effect.of_model.is_silent else None
    if ending.end is None or not effect.quotes_strings or SOURCE_LOG not in effect.of_model.waits:
        return None
    return ending.end.piece(sent, sent.event)

"""Statements of followed sessions that pass unseen: on which terms, and how they are followed later.

A statement that is like others has the same effect in every session that is in the same place. One that makes
no group yet need not be told of before it is sent: it may pass, and is followed when the session is next looked
at, before anything else happens in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from binlane.live.gateway.judge import RepeatedStatement, SeenStatement, Unseen
from binlane.live.port.alike_statements import AlikeStatements, Repeated, SentTemplate
from binlane.live.port.followed_session import FollowedSession
from binlane.statements.session.statement_template import StartState, StatementTemplate


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
    """

    of_model: StatementTemplate
    sent: SentTemplate


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
        return Unseen(is_plain=False, terms=place.terms, place=place, last=_seen(one, place))

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

    def repeat(self, statements: Sequence[RepeatedStatement]) -> None:
        """Follow statements that have run, each as one that was like others in its place.

        Args:
            statements: The statements, with effects of `terms`.
        """
        session = self._session
        for text, effect, insert_id in statements:
            self._alike.repeat(self.go_on(text, effect), insert_id)
        session.is_in_transaction = session.model.session.state.transaction.is_active

    def go_on(self, text: str, effect: object) -> Repeated:
        """Give a statement that was sent, as one that was like others in its place; it makes no group yet.

        Args:
            text: Text of the client's statement.
            effect: Effect that such statements have, as told by `terms`.
        """
        assert isinstance(effect, KnownEffect), "it was given"
        (of_model, sent), session = effect, self._session
        values = session.reader.values
        assert values is not None, "the session was in a place"
        event = sent.event_of(text, values.thread_id)
        assert event is not None, "the text is plain"
        number, context = session.model.session.state.number + 1, None
        if sent.waiting is not None and sent.event is not None:
            context = self._alike.context_of(sent.waiting, values)
        # In a third of the time of `Repeated(…)`.
        return tuple.__new__(Repeated, (text, sent, of_model, number, None, context, event))


def _seen(one: Repeated, behind: Place) -> SeenStatement | None:
    """Say of a statement that has run how others pass that are like it; None if they have to be judged.

    Args:
        one: The statement, as the session has sent it.
        behind: Place of the session behind the statement.
    """
    sent, effect = one.sent, one.effect
    if one.plans is not None:
        return None
    before = behind._replace(state=effect.before)
    if sent.waiting is None and effect.stays_at(behind.state):
        return SeenStatement(before) if effect.before is behind.state else None
    if not behind.is_tracked or not (sent.waiting is not None or effect.is_silent):
        return None
    turns = effect.before.is_active is not behind.state.is_active
    return SeenStatement(before, KnownEffect(effect, sent), sent.has_rows, sent.is_update, turns)

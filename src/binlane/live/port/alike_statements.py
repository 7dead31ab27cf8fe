"""Statements of a session of which it has run others that are alike: judged and followed in few steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from binlane.live.gateway.judge import StatementReply
from binlane.live.port.context_reader import may_run_programs
from binlane.live.port.followed_session import CHANGING, FollowedSession
from binlane.live.port.group_tracking import UnderWay
from binlane.live.port.known_statements import SentTemplate
from binlane.statements.session.plan_bytes import EncodedPlans
from binlane.statements.session.statement_template import StatementTemplate
from binlane.statements.sql.statement_kinds import StatementKind

_ALIKE_MAX: Final = 256
_NONE_CHANGED: Final = " Changed: 0 "
"""In the OK packet of an UPDATE."""


class Repeated(NamedTuple):
    """A statement that the source runs, of which others have run that are alike.

    Attributes:
        text: Text of the client's statement.
        known: Knowledge of the statements that are alike.
        number: Number of the statement in its session.
        plans: Plan of the statement's group; None for a statement that makes no group.
    """

    text: str
    known: SentTemplate
    number: int
    plans: EncodedPlans | None

    @property
    def is_intended(self) -> bool:
        """True if the statement's plan was given to `Attributions`."""
        return self.plans is not None


class AlikeStatements:
    """Knowledge of a session's statements, by the effect that statements have in common.

    Args:
        session: The client's session, as it is followed.
    """

    def __init__(self, session: FollowedSession) -> None:
        self._session = session
        self._known: dict[StatementTemplate, SentTemplate] = {}

    def begin(self, text: str, effect: StatementTemplate) -> Repeated | None:
        """Tell of a statement that is now sent; None if it is like no other one.

        Args:
            text: Text of the client's statement.
            effect: Effect that all such statements have.
        """
        known = self._known.get(effect)
        if known is None:
            return None
        session = self._session
        tracking = session.tracking
        # The session's catalog may lack what was asked for since; this one's objects were known.
        if (
            known.definitions is not session.definitions
            or known.version is not session.shared.catalog.version
            or tracking.spoils
            or session.warnings.are_changed
            or not session.reader.begin_plain(known.values)
        ):
            return None
        number, plans = session.model.session.state.number + 1, None
        if known.plan is not None:
            plans = known.filled(text)
            if plans is None or not tracking.is_on:
                return None
            session.shared.attributions.intend(tracking.thread_id, number, plans)
        elif session.wants_tracking:
            return None
        # In a third of the time of `Repeated(…)`.
        return tuple.__new__(Repeated, (text, known, number, plans))

    def has_repeated(self, one: Repeated, replies: Sequence[StatementReply]) -> bool:
        """Follow a statement; False where it did not do the same as the others.

        Args:
            one: The statement that the source has run.
            replies: Replies of the source to the statement.
        """
        _, known, number, plans = one
        reply = replies[0]
        session = self._session
        model, tracking = session.model, session.tracking
        if (
            reply.errno
            or len(replies) > 1
            or known.version is not session.shared.catalog.version
            or session.is_in_transaction is not model.session.state.transaction.is_active
        ):
            return False
        if known.plan is None:
            if reply.tracked or reply.gtids:
                return False
            model.repeat()
            return True
        if plans is None or reply.is_result_set or not reply.affected_rows:
            return False
        if known.is_update and has_no_rows(reply, is_update=True):
            return False
        model.repeat()
        last, others = tracking.told((reply,)), None
        if last is not None and reply.insert_id and known.has_insert_id:
            others = known.with_insert_id(plans, reply.insert_id)
        session.shared.attributions.done(tracking.thread_id, number, last, others)
        return True

    def looked_at(self, one: Repeated) -> UnderWay:
        """Give a known statement in the form of an unknown one: nothing has changed meanwhile."""
        session = self._session
        expected, facts = session.model.preview(one.text), session.facts_of(one.text)
        needs = session.needs(facts, expected)
        begun = None if needs is None else session.reader.begin(needs)
        context = None if begun is None else begun[0]
        if context is not None:
            session.tracking.planning.know(expected.numbers, context)
        return UnderWay(
            text=one.text,
            facts=facts,
            expected=expected,
            context=context,
            use=session.use(facts, expected, needs),
            catalog_version=one.known.version,
            is_intended=one.is_intended,
        )

    def keep(self, one: UnderWay, effect: StatementTemplate) -> None:
        """Keep the common part of a statement and those that are alike.

        Args:
            one: A statement that is sent as it came.
            effect: Effect that all such statements have.
        """
        session = self._session
        kind, expected, reader = one.facts.effects.kind, one.expected, session.reader
        if session.tracking.spoils or not reader.begin_plain(reader.values):
            return
        known: SentTemplate | None
        known = template = SentTemplate(
            session.definitions,
            one.catalog_version,
            reader.values,
            is_update=kind is StatementKind.UPDATE,
        )
        if kind is StatementKind.SELECT:
            is_silent = not (expected.groups or expected.mark or expected.has_texts)
            if not is_silent or expected.result.notes or may_run_programs(one.facts):
                return
        elif kind in CHANGING and len(one.plans) == 1 and one.use is not None:
            known = template.with_write(expected, one.plans[0], one.text, one.use)
        else:
            return
        if known is not None:
            if len(self._known) >= _ALIKE_MAX:
                self._known.clear()
            self._known[effect] = known


def has_no_rows(reply: StatementReply, *, is_update: bool) -> bool:
    """True if a reply says that no rows were changed; a client may ask for those that were found."""
    return not reply.affected_rows or (is_update and _NONE_CHANGED in reply.info)

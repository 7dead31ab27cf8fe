"""One client's session through the port: judged before its statements run, followed after.

A session is in one of four phases. *Relayed*: nobody judges it, as the source was not set up for that. *Unread*:
nothing of it has to be known yet. *Followed*: a session of the model (`session.Session`) goes along with it.
*Out of step*: the model does not know the session's state any longer.

    unread ──▶ followed ◀──▶ out of step         unread, out of step ──▶ relayed

Where model and source disagree on anything, the model is wrong: from there on nothing of the transaction is
planned, which makes rows of it, and the session is followed anew behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.handler import HandlerSession
from binlane.live.gateway.judge import (
    ALL_UNSEEN,
    AS_IT_IS,
    PASS,
    ClientStatement,
    Done,
    OkFields,
    Pass,
    PassedEnds,
    RepeatedStatement,
    RunVerdict,
    StatementReply,
    TextReading,
    Unseen,
    Verdict,
)
from binlane.live.port.followed import Followed
from binlane.live.port.followed_session import FollowedSession
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.port.long_statements import LongTexts
from binlane.live.port.port_parts import FindParts, PortParts
from binlane.live.port.unread import NotFollowed, Unread, only_reads_diagnostics
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.results import ResultSet
from binlane.statements.session.session import Session
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import LONG

_VERSIONS_MAX: Final = 16


class Relayed(NotFollowed):
    """A session whose source was not set up to be judged: every statement goes there as it came.

    Args:
        dialect: Dialect of the session's texts, as far as that is known.
    """

    reads_long_texts: Final = False

    def __init__(self, dialect: Dialect) -> None:
        self.reading = TextReading(dialect, "utf8mb4")

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Let a command pass."""
        del statements
        return PASS

    def unseen(self) -> Unseen:
        """Let all statements pass."""
        return ALL_UNSEEN


class OutOfStep:
    """A session whose state the model does not know any longer.

    Outside of a transaction it is followed anew before its next statement. In one it goes on with the model as
    that is, and its groups go as rows.

    Args:
        followed: The session as it was followed.
        dialect: Dialect of the session's texts before anything is known of them.
    """

    def __init__(self, followed: Followed, dialect: Dialect) -> None:
        self.followed = followed
        self._dialect = dialect
        self.done = followed.done
        self.done_at_once = followed.done_at_once
        self.local_data = followed.local_data
        self.used = followed.used
        self.stumbled = followed.stumbled

    @property
    def begins_anew(self) -> bool:
        """True if the session is followed anew before it goes on."""
        return not self.followed.session.is_in_transaction

    @property
    def reading(self) -> TextReading | None:
        """Same as in `Judge`."""
        return self.followed.reading

    @property
    def reads_long_texts(self) -> bool:
        """Same as in `Judge`."""
        return self.followed.reads_long_texts

    @property
    def hides_gtids(self) -> bool:
        """Same as in `Judge`."""
        return self.followed.hides_gtids

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Let a statement run that reads the diagnostics of the last one; None for others."""
        if len(statements) != 1:
            return None if statements else PASS
        text, _, is_complete, _ = statements[0]
        # Where warnings are changed, those that are not the source's are still to be put in.
        is_apart = self.begins_anew and not self.followed.session.warnings.are_changed
        if not is_apart or not is_complete or len(text) > LONG:
            return None
        return AS_IT_IS if only_reads_diagnostics(text, self._dialect) else None

    async def ended(self) -> None:
        """Same as in `Judge`; which temporary tables there were is not known."""
        self.followed.end_tracking()


@lru_cache(_VERSIONS_MAX)
def _dialect(server_version: str) -> Dialect:
    return Dialect(flavor=flavor_of(server_version).value)


_Phase = Relayed | Unread | Followed | OutOfStep


class PortSession:
    """Judges and follows one session; a `Judge` of the gateway.

    Attributes:
        judge: Gives the verdict on a command at once, or None; the present phase's own, as every statement calls
            it.
        done: Follows the replies to a command; the present phase's own.
        done_at_once: Follows a reply after which nothing is left to be done; the present phase's own.

    Args:
        client: The session on the source.
        find_parts: Gives the state that all sessions of the port share.
        known: That state, where it is known; None where it has to be asked for.
    """

    def __init__(
        self, client: HandlerSession, find_parts: FindParts, known: PortParts | None = None
    ) -> None:
        self._client = client
        self._find_parts = find_parts
        self._dialect = _dialect(client.server_version)
        self._long_texts = LongTexts()
        phase = self._unread()
        phase.shared = known
        self._enter(phase)

    # Phases ---------------------------------------------------------------------------------------

    def _unread(self) -> Unread:
        return Unread(self._dialect, self._find_parts, self._long_texts)

    def _enter(self, phase: _Phase) -> None:
        self._phase = phase
        self.judge: Callable[[Sequence[ClientStatement]], Verdict | None] = phase.judge
        self.done: Callable[[Sequence[StatementReply]], Done] = phase.done
        self.done_at_once: Callable[[OkFields], bool] = phase.done_at_once

    def _lose_step(self) -> None:
        if isinstance(self._phase, Followed):
            self._enter(OutOfStep(self._phase, self._dialect))

    async def _follow(self, phase: Unread | OutOfStep) -> Followed | None:
        """Follow the session as it is now; None where no session is judged.

        Args:
            phase: Phase of the session up to now.

        Raises:
            StatementError: If the source does not tell what has to be known.
            PeerError: If it goes away.
        """
        shared = await self._find_parts()
        if shared is None:
            self._enter(Relayed(self._dialect))
            return None
        before = phase if isinstance(phase, Unread) else phase.followed.session
        session = await FollowedSession.begin(self._client, shared, self._long_texts, before)
        followed = Followed(session, self._lose_step)
        self._enter(followed)
        return followed

    async def _followed(self, *, begins_anew: bool = True) -> Followed | None:
        """The session as it is followed, which begins where it has not; None where no session is judged.

        Args:
            begins_anew: True if a session out of step is followed anew.
        """
        phase = self._phase
        if isinstance(phase, Relayed):
            return None
        if isinstance(phase, Followed):
            return phase
        if isinstance(phase, OutOfStep) and not (begins_anew and phase.begins_anew):
            return phase.followed
        return await self._follow(phase)

    # Calls of the gateway -------------------------------------------------------------------------

    @property
    def reading(self) -> TextReading | None:
        """The way in which the source reads the session's next statement; None where that is not known."""
        return self._phase.reading

    @property
    def hides_gtids(self) -> bool:
        """True if the source tells GTIDs that the client has not asked for."""
        return self._phase.hides_gtids

    @property
    def reads_long_texts(self) -> bool:
        """True if the events of long statements in binlogs depend on the statements' texts."""
        return self._phase.reads_long_texts

    def unseen(self) -> Unseen | None:
        """Same as in `Judge`: of a session that is followed only known statements pass."""
        phase = self._phase
        return None if isinstance(phase, OutOfStep) else phase.unseen()

    async def learn(self) -> None:
        """Find out if statements pass whatever they say, then how the source reads the session's next one."""
        phase = self._phase
        if isinstance(phase, Unread) and phase.shared is None:
            await phase.find_parts()
            if phase.unseen() is not None:
                return
        followed = await self._followed(begins_anew=False)
        if followed is not None:
            await followed.learn()

    async def reset(self) -> None:
        """Begin anew: the session's state is asked for when its first statement needs it."""
        await self.ended()

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Give the verdict on a command; the source is asked for unknown objects and values.

        Raises:
            StatementError: If the source does not tell what has to be known.
            PeerError: If it goes away.
        """
        verdict: Verdict | None = None
        try:
            verdict = await self._judge_later(statements)
        finally:
            if not isinstance(verdict, RunVerdict):
                self._long_texts.forget()
        return verdict

    async def _judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        phase = self._phase
        if isinstance(phase, Unread):
            shared = await phase.find_parts()
            if shared is not None and await phase.concern_nobody(statements, shared):
                return Pass()
        followed = await self._followed()
        return Pass() if followed is None else await followed.judge_later(statements)

    async def state_now(self) -> tuple[LiveCatalog, Session] | None:
        """The objects, and the model as the client's session is; None where it is not followed.

        Raises:
            StatementError: If the source does not tell what has to be known.
            PeerError: If it goes away.
        """
        followed = await self._followed()
        if followed is None or isinstance(self._phase, OutOfStep):
            return None
        followed.session.make_current()
        return followed.session.shared.catalog, followed.session.model.session

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """The rows of a statement that shows variables, as the binlogs have them."""
        followed = await self._followed(begins_anew=False)
        if followed is None:
            return RowsAnswer(result.heads, result.rows)
        return await followed.shown(statement, result)

    def repeat(
        self, statements: Sequence[RepeatedStatement], ended: PassedEnds | None = None
    ) -> None:
        """Follow statements that have passed unseen, and were answered."""
        if isinstance(self._phase, Followed):
            self._phase.repeat(statements, ended)

    def passed(self) -> None:
        """Note that statements have passed unseen, of which nothing more is known."""
        if isinstance(self._phase, Unread):
            self._phase.has_passed = True

    def go_on(self, text: str, effect: object = None) -> None:
        """Follow a statement that has passed unseen, and is under way."""
        if isinstance(self._phase, Followed):
            self._phase.go_on(text, effect)

    def local_data(self, data: bytes) -> None:
        """Take some of the file that LOAD DATA LOCAL sends."""
        self._phase.local_data(data)

    def used(self, database: str) -> None:
        """Follow COM_INIT_DB."""
        self._phase.used(database)

    def stumbled(self) -> None:
        """Rely on nothing any more that is known of the session, until it begins anew."""
        self._long_texts.forget()
        self._phase.stumbled()

    async def unjudged(self) -> Verdict:
        """Let a command run of which nothing is known, or refuse it."""
        phase = self._phase
        if isinstance(phase, Unread):
            shared = phase.shared or await phase.find_parts()
            if shared is not None:
                return phase.unjudged(shared)
            self._enter(Relayed(self._dialect))
        if isinstance(phase, OutOfStep):
            return await phase.followed.unjudged()
        return await phase.unjudged() if isinstance(phase, Followed) else PASS

    async def ended(self) -> None:
        """End the session: its temporary tables and locks are gone at the source."""
        await self._phase.ended()
        self._long_texts.forget()
        phase = self._phase
        if not (isinstance(phase, Relayed) or (isinstance(phase, Unread) and phase.is_new)):
            self._enter(self._unread())

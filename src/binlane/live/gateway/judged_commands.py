"""Judged commands: a judge is asked of the client's statements, and what it says is done (pure).

Binlane's own statements that a judge wants first go to the source together, and the command behind
them once the last has succeeded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from binlane.live.gateway.answers import RowsInParts
from binlane.live.gateway.client_frames import ClientFrames
from binlane.live.gateway.client_statements import (
    QUERY,
    ClientCommand,
    ClientStatements,
    UncutStatements,
    Unwritten,
)
from binlane.live.gateway.command_rules import (
    UNJUDGED,
)
from binlane.live.gateway.diagnostics import OwnDiagnostics
from binlane.live.gateway.judge import (
    AS_IT_IS,
    NOBODY,
    NOTHING_LEFT,
    PASS,
    ClientStatement,
    Done,
    Give,
    OkFields,
    Pass,
    Refuse,
    RunVerdict,
    StatementReply,
    Verdict,
)
from binlane.live.gateway.login import Login
from binlane.live.gateway.own_replies import OwnReplies
from binlane.live.gateway.phase import TRANSITIONS, Phase, PhaseEvent
from binlane.live.gateway.port_counts import PortCounts
from binlane.live.gateway.relay_questions import (
    Cutting,
    Entering,
    Following,
    Judging,
    Learning,
    Question,
    Resetting,
)
from binlane.live.gateway.reply_follower import (
    JUDGED_EXECUTION,
    JUDGED_QUERY,
    QUERY_THAT_PASSES,
    ReplyFollower,
    Role,
    Watcher,
)
from binlane.log.codec.format import flavor_of
from binlane.log.codec.packets.commands import (
    BinlogDump,
    BinlogDumpGtid,
    encode_query,
)
from binlane.log.codec.packets.execution import opens_cursor
from binlane.log.codec.packets.flags import (
    NO_CAPABILITIES,
    NO_EXTENSIONS,
    Capability,
    Command,
)
from binlane.log.codec.packets.framing import (
    FRAME_HEADER_LENGTH,
    frame,
    frame_count,
)
from binlane.log.codec.packets.replies import error_packet
from binlane.log.codec.types import Flavor

Statements = tuple[ClientStatement, ...] | UncutStatements | Unwritten | None
"""The statements of a command, as of `ClientStatements.of`."""


# Members of enumerations are looked up anew each time that they are named.
_EXECUTE: Final = int(Command.STMT_EXECUTE)
_STATEMENT_ID_END: Final = 5
_PREPARING: Final = Phase.PREPARING
_JUDGED: Final = Role.JUDGED
_OWN: Final = Role.OWN
_PASSES: Final = Role.PASSES
_WATCHED: Final = Role.WATCHED
_COMMAND_SENT: Final = PhaseEvent.COMMAND_SENT
BEHIND_COMMAND: Final = TRANSITIONS[Phase.READY][PhaseEvent.COMMAND_SENT]


BEFORE_LOGIN: Final = (
    OwnReplies([], NO_CAPABILITIES, NO_EXTENSIONS),
    ReplyFollower(NO_CAPABILITIES, NO_EXTENSIONS),
    ClientStatements(NO_CAPABILITIES, UNJUDGED),
)
"""Parts of all sessions before their login, and behind their end: nothing is answered, nothing expected, nothing prepared."""


class JudgedCommands:
    """The part of a session's state for judging a command and carrying out the verdict.

    Args:
        login: State of the session's login.
        counts: Counts of the port, to which the session's statements are added.

    Attributes:
        phase: Says who is waited for.
        question: Question that has to be answered before the client's next packet is read; None in any phase
            but ASKING and DUMPING.
        diagnostics: Rows that SHOW WARNINGS gets where the source has none.
    """

    def __init__(self, login: Login, counts: PortCounts) -> None:
        self._login = login
        self._counts = counts
        self._frames = ClientFrames()
        self._to_client: list[bytes] = []
        self._to_source: list[bytes] = []
        # The session's own are made at its login.
        self._own, self._source, self._statements = BEFORE_LOGIN
        self._prepared: ClientCommand | None = None
        # One that was judged, and goes as it came.
        self._last_command = b""
        self._follow_ups: deque[Entering | Resetting | Following] = deque()
        self.phase = Phase.LOGIN
        self.question: Question | None = None
        self.diagnostics = OwnDiagnostics()
        self.judge = NOBODY

    @property
    def server_version(self) -> str:
        """The source's, without the prefix for old replicas."""
        return self._login.server_version

    @property
    def capabilities(self) -> Capability:
        """Capabilities that the client and the source have agreed on."""
        return self._login.capabilities

    @property
    def is_judged(self) -> bool:
        """True if the session's statements are read, and its judge is told the replies."""
        return self.judge is not NOBODY

    @property
    def hides_gtids(self) -> bool:
        """True if the source tells GTIDs in the session's state that the client has not asked for."""
        return self.judge.hides_gtids

    @property
    def _flavor(self) -> Flavor:
        return flavor_of(self.server_version)

    def _move(self, event: PhaseEvent) -> None:
        self.phase = TRANSITIONS[self.phase][event]

    def _ask(self, question: Question) -> None:
        self.question = question
        is_dump = isinstance(question, BinlogDump | BinlogDumpGtid)
        self._move(PhaseEvent.DUMP_ASKED if is_dump else PhaseEvent.ASKED)

    def _find_statements(self, number: int, payload: bytes) -> Statements:
        if self.judge is not NOBODY:
            return self._statements.of(number, payload, self.judge)
        return self._statements.unread(number, payload) if self.diagnostics.are_own else ()

    def _judge(self, found: Statements, number: int, payload: bytes, packet: bytes) -> None:
        """Ask the judge of a command that runs statements, and carry out the verdict.

        Args:
            found: The statements, as of `ClientStatements.of`.
            number: Number of the command, as in `ClientCommand`.
            payload: The whole command, as in `ClientCommand`.
            packet: Frames of the command, as in `ClientCommand`.
        """
        prepared = self._statements.prepared
        if number == _EXECUTE and packet and prepared.without_types:
            payload = prepared.with_types(payload)
            packet = frame(payload, 0)
        if isinstance(found, tuple):
            judge = self.judge
            verdict = judge.judge(found)
            self._last_command = b""
            if packet and not self.diagnostics.are_own:
                if verdict is AS_IT_IS and (
                    number == QUERY or (number == _EXECUTE and not opens_cursor(payload))
                ):
                    self._counts.verdicts[RunVerdict] += 1
                    self.phase = BEHIND_COMMAND
                    self._last_command = payload
                    self._source.expect_known(JUDGED_QUERY if number == QUERY else JUDGED_EXECUTION)
                    self._to_source.append(packet)
                    return
                if verdict is PASS and number == QUERY:
                    self._counts.verdicts[Pass] += judge is not NOBODY
                    self._source.expect_known(QUERY_THAT_PASSES)
                    self._to_source.append(packet)
                    return
            if number == _EXECUTE and verdict is PASS and packet:
                prepared.let_pass(payload)
        command = ClientCommand(number, payload, packet)
        self._own.begin(frame_count(len(payload)), is_binary=number != QUERY)
        if found is None:
            self._ask(Learning(command))
        elif not isinstance(found, tuple):
            self._ask(Cutting(found, command))
        elif verdict is None:
            self._ask(Judging(found, command))
        else:
            self._decide(verdict, found, command)

    def _decide(
        self, verdict: Verdict, statements: Sequence[ClientStatement], command: ClientCommand
    ) -> None:
        """Carry out a verdict; a question is open behind it only if rows are to be sent in parts."""
        if self.is_judged:
            self._counts.judge(verdict)
        if isinstance(verdict, Give):
            self.diagnostics.forget()
        elif self.diagnostics.are_own and not isinstance(verdict, Refuse):
            text = statements[0].text if len(statements) == 1 else ""
            is_open = self.diagnostics.runs(text, self._flavor)
            if is_open and isinstance(verdict, Pass):
                self.diagnostics.forget()  # nobody hears what comes of it
        if isinstance(verdict, Pass):
            self._send(command, _PASSES)
            return
        if isinstance(verdict, RunVerdict):
            self._run(verdict, command)
            return
        self._note_unsent(command)
        if isinstance(verdict, Refuse):
            if command.packet:
                self._own.refuse(verdict.error)
            else:
                self._frames.pass_command(error_packet(verdict.error))
            self.diagnostics.tell(verdict.error.listed)
        elif isinstance(verdict.answer, RowsInParts):
            self._ask(Judging(statements, command, verdict.answer))
        else:
            self._own.answer(verdict.answer, self._source.status)

    def _run(self, verdict: RunVerdict, command: ClientCommand) -> None:
        if verdict.text is not None:
            self._note_unsent(command)
            packet = self._query_packet(verdict.text)
            command = ClientCommand(QUERY, packet[FRAME_HEADER_LENGTH:], packet)
        if not verdict.before:
            self._move(_COMMAND_SENT)
            self._send(command, _JUDGED)
            return
        self._prepared = command
        self._move(PhaseEvent.OWN_SENT)
        for statement in verdict.before:
            self._source.expect(QUERY, _OWN)
            self._to_source.append(self._query_packet(statement))

    def _send(self, command: ClientCommand, role: Role) -> None:
        number, payload, packet = command
        self._source.expect(number, role, opens_cursor=opens_cursor(payload))
        if packet:
            self._to_source.append(packet)
        else:
            self._frames.pass_command()

    def _note_unsent(self, command: ClientCommand) -> None:
        """Note that a command does not go to the source, which would have forgotten values sent before it."""
        if command.number == _EXECUTE and self._statements.prepared.unsent(command.payload):
            self._source.expect(Command.STMT_RESET, _OWN)
            reset = bytes((Command.STMT_RESET,)) + command.payload[1:_STATEMENT_ID_END]
            self._to_source.append(frame(reset, 0))

    def answered(self, replies: list[StatementReply]) -> int:
        """Tell the judge the replies to a command; give the number of warnings to add."""
        self.diagnostics.ran(replies)
        done = self.judge.done(replies)
        return 0 if done is NOTHING_LEFT else self._take_done(done)

    def answered_at_once(self, ok: OkFields) -> bool:
        """Tell the judge an OK packet that answers a command in full; False if `answered` has to be called."""
        return not self.diagnostics.are_own and self.judge.done_at_once(ok)

    def own_answered(self, reply: StatementReply, payload: bytes) -> None:
        """Send the command once the last statement before it has succeeded."""
        if self.phase is not _PREPARING:
            return  # another one has failed before
        if reply.errno:
            command, self._prepared = self._prepared, None
            if command is not None:
                self._note_unsent(command)
            self._own.send([payload])
            self._move(PhaseEvent.OWN_FAILED)
            self._take_done(self.judge.done(()))
        elif not self._source.expects_more:
            command, self._prepared = self._prepared, None
            assert command is not None, "it waits for them"
            self._move(_COMMAND_SENT)
            self._send(command, _JUDGED)

    def _take_done(self, done: Done) -> int:
        if done.then is not None:
            self._follow_ups.append(Following(done.then))
        return done.warnings

    def _query_packet(self, text: str) -> bytes:
        return frame(encode_query(text, self.capabilities), 0)

    def _forward(self, number: int, packet: bytes, watcher: Watcher | None = None) -> None:
        role = _PASSES if watcher is None else _WATCHED
        self._source.expect(number, role, watcher=watcher)
        self._to_source.append(packet)

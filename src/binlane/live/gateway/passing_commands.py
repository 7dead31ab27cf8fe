"""Commands that pass without being read: when they may, and how a session goes on behind them (pure)."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.live.gateway.client_statements import QUERY
from binlane.live.gateway.command_reader import COMMAND, READY, CommandReader
from binlane.live.gateway.judge import (
    Pass,
    PassedEnds,
    RepeatedStatement,
    RunVerdict,
    SeenStatement,
)
from binlane.live.gateway.judged_commands import BEHIND_COMMAND
from binlane.live.gateway.known_statements import Transitions, known_statements
from binlane.live.gateway.login import Login, LoginRules
from binlane.live.gateway.passing_sessions import PassedSession, Passing, RecordedCommand
from binlane.live.gateway.port_counts import PortCounts
from binlane.live.gateway.reply_follower import Role
from binlane.log.kernels.passing_layout import (
    EXECUTIONS,
    KNOWN_STATEMENTS,
    PLAIN_TEXTS,
    STEP_IDLE,
)


class PassingCommands(CommandReader):
    """The part of a session's state for commands that pass.

    Args:
        login: State of the session's login.
        rules: Conditions for the connections of client and source.
        counts: Counts of the port, to which the session's statements are added.
    """

    def __init__(self, login: Login, rules: LoginRules, counts: PortCounts) -> None:
        super().__init__(login, rules, counts)
        self._passes_known = False
        # Those of the time when commands began to pass.
        self._transitions: Transitions = {}
        # Places and numbers of the last statements that were recorded.
        self._recorded: Sequence[tuple[int, int]] = ()

    def passing(self) -> Passing | None:
        """Give the terms on which the session's next commands may pass unread; None for none."""
        if self.phase is not READY or self.question is not None or self._frames.data:
            return None
        if not self._source.is_idle or self._follow_ups or self._frames.next is not COMMAND:
            return None
        if self.diagnostics.are_own or self._statements.has_attributes:
            return None
        unseen = self.judge.unseen()
        if unseen is None:
            return None
        rules, place = PLAIN_TEXTS if unseen.is_plain else EXECUTIONS, 0
        if unseen.place is not None:
            known = known_statements()
            place, rules = known.place_of(unseen.place), KNOWN_STATEMENTS
            if unseen.last is not None and self._last_command:
                self._know(unseen.last, place)
            if not known.leads_from(place):
                return None
            self._transitions = known.transitions
        self._passes_known = bool(place)
        rules |= self._source.passing_rules
        status, statements = int(self._source.status), self._statements.prepared.passing
        return Passing(rules, status, unseen.terms, statements, place, unseen.ends)

    def _know(self, seen: SeenStatement, place: int) -> None:
        """Let commands pass that are like the last one, which was judged.

        Args:
            seen: Statement of the last command, as its judge tells of it.
            place: Number of the session's place behind it.
        """
        known, payload, prepared = known_statements(), self._last_command, self._statements.prepared
        self._last_command = b""
        if payload[0] == QUERY:
            number = known.number_of(payload[1:])
        else:
            if seen.effect is not None and not prepared.reads_again(payload):
                return
            number = prepared.let_pass(payload, known.number_of_prepared)
        if number >= 0 and known.add(seen, number, place) and seen.piece is not None:
            known.add_pieces(seen, number, self._recorded)

    def go_on_unread(self, passed: PassedSession) -> None:
        """Go on where commands have passed unread up to now."""
        self.count_unread(passed.commands, passed.run)
        records, under_way = passed.records, passed.under_way
        is_known = self._passes_known and passed.execution and passed.step != STEP_IDLE
        self._source.go_on(passed, Role.JUDGED if is_known else Role.PASSES)
        if not is_known and not self._source.is_idle:
            self.judge.passed()  # the last one is under way
        if records or under_way is not None or passed.ended is not None:
            self._repeat(records, under_way, passed.ended)
        if is_known:
            self.phase = BEHIND_COMMAND
            if under_way is None:
                self._last_command = b""
                self.judge.go_on(self._text_like(passed.execution))

    def _text_like(self, execution: int) -> str:
        """Give the text of a read that has passed: of a known text another one of its form."""
        if execution < 0:
            return known_statements().sample(-1 - execution)
        return self._statements.prepared.text_of(execution)

    def _repeat(
        self,
        records: Sequence[RecordedCommand],
        under_way: RecordedCommand | None,
        ended: PassedEnds | None,
    ) -> None:
        """Tell the judge of commands that have passed and were recorded.

        Args:
            records: Commands that have been answered, in order.
            under_way: The one that is under way, if it was recorded.
            ended: Transactions that have passed as wholes before these; None for none.
        """
        self._recorded = [record[:2] for record in records]
        judge, reading = self.judge, self.judge.reading
        repeated: list[RepeatedStatement] = []
        for record in records if under_way is None else (*records, under_way):
            place, number, insert_id, payload = record
            known, found = self._transitions.get((place, number)), None
            if payload[0] != QUERY:
                found = self._statements.prepared.executed_again(payload, reading)
            every = found or self._find_statements(payload[0], payload)
            one = every[0] if isinstance(every, tuple) and len(every) == 1 else None
            if known is None or one is None or not one.is_complete:
                if ended is not None:
                    judge.repeat((), ended)
                judge.stumbled()
                return
            # As `RepeatedStatement(…)`, in a third of the time.
            fields = one[0], known.effect, insert_id
            repeated.append(tuple.__new__(RepeatedStatement, fields))
        last = None if under_way is None else repeated.pop()
        if repeated or ended is not None:
            judge.repeat(repeated, ended)
        if last is not None and under_way is not None:
            self._counts.verdicts[RunVerdict] += 1
            self._commands += 1
            self._last_command = under_way.payload
            judge.go_on(last.text, last.effect)

    def count_unread(self, count: int, run: int) -> None:
        """Count commands that have passed unread.

        Args:
            count: Number of those of which the judge is not told.
            run: Number of those of which the judge is told.
        """
        self._commands += count + run
        if self.is_judged:
            self._counts.verdicts[Pass] += count
            if count:
                self.judge.passed()
            self._counts.verdicts[RunVerdict] += run

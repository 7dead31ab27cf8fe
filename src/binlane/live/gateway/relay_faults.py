"""Faults of binlane's own, while a session is judged or answered: told in one line, and survived.

A model of what servers do is never without faults. Whatever one raises that it is not meant to is
caught here, between the gateway and the judge: the session goes on, and what is not known of it any
more goes as rows, or is refused where a binlog could not have them.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from traceback import walk_tb
from typing import Final, TypeVar

from binlane.errors import BinlaneError, StatementError
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.judge import (
    NOTHING_LEFT,
    ClientStatement,
    Done,
    Judge,
    OkFields,
    PassedEnds,
    RepeatedStatement,
    StatementReply,
    TextReading,
    Unseen,
    Verdict,
)
from binlane.log.codec.packets.results import ResultSet

TellFault = Callable[[Exception, str], None]
"""Tells of a fault, and of what was under way when it came."""
_OF_THE_WORLD: Final = (BinlaneError, OSError)
"""Errors that a judge may raise where it waits for the source."""
_VERB: Final = re.compile(r"[A-Za-z]{1,20}")
_OWN: Final = "binlane."
_Got = TypeVar("_Got")


def place_of(fault: Exception) -> str:
    """Name an error and the line of binlane that raised it: `KeyError in binlane.statements.sql:71`."""
    place = "?"
    for frame, line in walk_tb(fault.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_OWN):
            place = f"{module}:{line}"
    return f"{type(fault).__name__} in {place}"


def kind_of(text: str) -> str:
    """Give the first word of a statement of which nothing else is told."""
    verb = _VERB.match(text)
    return "a statement" if verb is None else verb[0].upper()


class GuardedJudge:
    """A judge whose faults do not get to the gateway.

    Args:
        judge: The judge that is asked.
        tell: Function that gets each fault.
    """

    def __init__(self, judge: Judge, tell: TellFault) -> None:
        self._judge = judge
        self._tell = tell
        self._is_unjudged = False

    @property
    def reading(self) -> TextReading | None:
        """Same as in `Judge`."""
        return self._judge.reading

    @property
    def hides_gtids(self) -> bool:
        """Same as in `Judge`."""
        return self._judge.hides_gtids

    @property
    def reads_long_texts(self) -> bool:
        """Same as in `Judge`."""
        return self._judge.reads_long_texts

    async def learn(self) -> None:
        """Same as in `Judge`; with a fault it stays unknown how statements are read."""
        await self._waited("learning how its statements are read", self._judge.learn())

    async def reset(self) -> None:
        """Same as in `Judge`."""
        await self._waited("the session's reset", self._judge.reset())

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """Same as in `Judge`."""
        try:
            return self._judge.judge(statements)
        except Exception as fault:  # noqa: BLE001 - any, so that the session goes on
            self._stumble(fault, f"judging {_kinds(statements)}")
            self._is_unjudged = True
            return None

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """Same as in `Judge`; a command whose judging failed is run unjudged, or refused."""
        if not self._is_unjudged:
            doing = f"judging {_kinds(statements)}"
            verdict = await self._waited(doing, self._judge.judge_later(statements))
            if verdict is not None:
                return verdict
        self._is_unjudged = False
        return await self._judge.unjudged()

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """Same as in `Judge`; with a fault, the source's rows are given."""
        doing = f"answering {kind_of(statement)}"
        shown = await self._waited(doing, self._judge.shown(statement, result))
        return RowsAnswer(result.heads, result.rows) if shown is None else shown

    def unseen(self) -> Unseen | None:
        """Same as in `Judge`."""
        return self._judge.unseen()

    def repeat(
        self, statements: Sequence[RepeatedStatement], ended: PassedEnds | None = None
    ) -> None:
        """Same as in `Judge`."""
        try:
            self._judge.repeat(statements, ended)
        except Exception as fault:  # noqa: BLE001 - as above
            self._stumble(fault, "following statements that have passed")

    def passed(self) -> None:
        """Same as in `Judge`."""
        self._judge.passed()

    def go_on(self, text: str, effect: object = None) -> None:
        """Same as in `Judge`."""
        try:
            self._judge.go_on(text, effect)
        except Exception as fault:  # noqa: BLE001 - as above
            self._stumble(fault, "following a statement that has passed")

    def done(self, replies: Sequence[StatementReply]) -> Done:
        """Same as in `Judge`."""
        try:
            done = self._judge.done(replies)
        except Exception as fault:  # noqa: BLE001 - as above
            return self._stumble(fault, "following a statement")
        return done if done.then is None else replace(done, then=partial(self._then, done.then))

    def done_at_once(self, ok: OkFields) -> bool:
        """Same as in `Judge`."""
        try:
            return self._judge.done_at_once(ok)
        except Exception as fault:  # noqa: BLE001 - as above
            self._stumble(fault, "following a statement")
            return True

    def local_data(self, data: bytes) -> None:
        """Same as in `Judge`."""
        try:
            self._judge.local_data(data)
        except Exception as fault:  # noqa: BLE001 - as above
            self._stumble(fault, "following the file of LOAD DATA LOCAL")

    def used(self, database: str) -> None:
        """Same as in `Judge`."""
        try:
            self._judge.used(database)
        except Exception as fault:  # noqa: BLE001 - as above
            self._stumble(fault, "following COM_INIT_DB")

    async def ended(self) -> None:
        """Same as in `Judge`."""
        await self._waited("the session's end", self._judge.ended())

    def stumbled(self) -> None:
        """Same as in `Judge`."""
        self._judge.stumbled()

    async def unjudged(self) -> Verdict:
        """Same as in `Judge`."""
        return await self._judge.unjudged()

    async def _then(self, then: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._waited("what follows a statement", then())
        except StatementError:
            # The source refused a question of binlane's own, such as one that KILL QUERY met.
            self._judge.stumbled()

    async def _waited(self, doing: str, work: Awaitable[_Got]) -> _Got | None:
        """Give the result of the judge, once it has waited for others; None with a fault of its own."""
        try:
            return await work
        except _OF_THE_WORLD:
            raise
        except Exception as fault:  # noqa: BLE001 - as above
            self._stumble(fault, doing)
            return None

    def _stumble(self, fault: Exception, doing: str) -> Done:
        self._tell(fault, doing)
        self._judge.stumbled()
        return NOTHING_LEFT


def _kinds(statements: Sequence[ClientStatement]) -> str:
    """Give the kind of a packet's first statement, and the number of those behind it."""
    first = kind_of(statements[0].text) if statements else "nothing"
    return first if len(statements) <= 1 else f"{first} and {len(statements) - 1} more"

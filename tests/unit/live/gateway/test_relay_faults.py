"""A judge with faults: none of them gets to the gateway, and each is told once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from binlane.errors import PeerError, StatementError
from binlane.live.gateway.answers import RowsAnswer
from binlane.live.gateway.judge import (
    NOTHING_LEFT,
    PASS,
    ClientStatement,
    Done,
    StatementReply,
    Verdict,
)
from binlane.live.gateway.relay_faults import GuardedJudge, kind_of
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.results import ResultSet
from tests.recording_judge import RecordingJudge


def _fails(*_: Any, **__: Any) -> Any:
    raise KeyError("x")


async def _fails_later(*_: Any, **__: Any) -> Any:
    raise AssertionError


class _Told(list[tuple[str, str]]):
    def __call__(self, fault: Exception, doing: str) -> None:
        self.append((type(fault).__name__, doing))


def _guarded(**methods: Any) -> tuple[GuardedJudge, RecordingJudge, _Told]:
    judge, told = RecordingJudge(), _Told()
    for name, method in methods.items():
        setattr(judge, name, method)
    return GuardedJudge(judge, told), judge, told


_INSERT = (ClientStatement("INSERT INTO t VALUES ('secret')"),)


@pytest.mark.parametrize("name", ["judge", "judge_later"])
def test_a_command_is_not_judged(name: str) -> None:
    guarded, judge, told = _guarded(judge=lambda _: None, judge_later=_fails_later)
    if name == "judge":
        guarded, judge, told = _guarded(judge=_fails)
    assert guarded.judge(_INSERT) is None
    assert asyncio.run(guarded.judge_later(_INSERT)) is PASS
    assert judge.calls == ["stumbled", "unjudged"]
    assert [doing for _, doing in told] == ["judging INSERT"]


def test_the_next_command_is_judged() -> None:
    guarded, judge, told = _guarded(judge=_fails)
    assert guarded.judge(_INSERT) is None
    asyncio.run(guarded.judge_later(_INSERT))
    setattr(judge, "judge", lambda _: PASS)  # noqa: B010 - a type checker minds another way
    assert guarded.judge((*_INSERT, *_INSERT)) is PASS
    assert len(told) == 1


def test_what_is_told_of_replies_and_files() -> None:
    guarded, judge, told = _guarded(done=_fails, local_data=_fails, used=_fails)
    assert guarded.done([StatementReply()]) is NOTHING_LEFT
    guarded.local_data(b"x")
    guarded.used("d")
    assert judge.calls == ["stumbled"] * 3
    assert len(told) == 3


def test_what_follows_a_statement() -> None:
    def done(_: Sequence[StatementReply]) -> Done:
        return Done(3, _fails_later)

    guarded, judge, told = _guarded(done=done)
    found = guarded.done([StatementReply()])
    assert found.warnings == 3
    assert found.then is not None
    asyncio.run(found.then())  # type: ignore[arg-type]  # it is a coroutine
    assert judge.calls == ["stumbled"]
    assert told == [("AssertionError", "what follows a statement")]


def test_a_question_behind_a_statement_that_the_source_refuses() -> None:
    async def refused() -> None:
        raise StatementError("Query execution was interrupted", errno=1317)

    guarded, judge, told = _guarded(done=lambda _: Done(0, refused))
    then = guarded.done([StatementReply()]).then
    assert then is not None
    asyncio.run(then())  # type: ignore[arg-type]  # it is a coroutine
    assert judge.calls == ["stumbled"]
    assert not told


def test_what_waits_for_the_source() -> None:
    guarded, judge, told = _guarded(
        learn=_fails_later, reset=_fails_later, ended=_fails_later, shown=_fails_later
    )
    result = ResultSet(("c",), ((b"1",),), ServerStatus.AUTOCOMMIT)
    asyncio.run(guarded.learn())
    asyncio.run(guarded.reset())
    assert asyncio.run(guarded.shown("SHOW STATUS", result)) == RowsAnswer(
        result.heads, result.rows
    )
    asyncio.run(guarded.ended())
    assert judge.calls == ["stumbled"] * 4
    assert ("AssertionError", "answering SHOW") in told


@pytest.mark.parametrize(
    "error", [StatementError("no"), PeerError("gone", peer="s", phase="query"), OSError("gone")]
)
def test_what_is_no_fault_is_raised(error: Exception) -> None:
    async def later(_: Sequence[ClientStatement]) -> Verdict:
        raise error

    guarded, judge, told = _guarded(judge_later=later)
    with pytest.raises(type(error)):
        asyncio.run(guarded.judge_later(_INSERT))
    assert not judge.calls
    assert not told


def test_nothing_of_a_text_but_its_first_word_is_told() -> None:
    assert kind_of("create user u identified by 'secret'") == "CREATE"
    assert kind_of("/* secret */ DO 1") == "a statement"

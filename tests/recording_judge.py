"""A judge that remembers what it is told and says what a test wants, and a port that asks it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.errors import StatementError
from binlane.live.gateway.answers import Answer, RowsAnswer
from binlane.live.gateway.handler import HandlerSession, Send
from binlane.live.gateway.judge import (
    NOTHING_LEFT,
    PASS,
    ClientStatement,
    Done,
    Judge,
    OkFields,
    PassedEnds,
    RepeatedStatement,
    RunVerdict,
    StatementReply,
    TextReading,
    Unseen,
    Verdict,
)
from binlane.live.gateway.settings import GatewaySettings
from binlane.live.gateway.transport import Gateway
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.log.codec.packets.results import ResultSet
from binlane.positions import FilePosition, Position
from binlane.statements.sql.servers import Dialect

MARIADB: Final = TextReading(Dialect(flavor="mariadb"), "utf8mb4")
MYSQL: Final = TextReading(Dialect(flavor="mysql"), "utf8mb4")
_TIMEOUT_S: Final = 60.0


def _let_run(statements: Sequence[ClientStatement]) -> Verdict | None:
    del statements
    return RunVerdict()


def _nothing_left(replies: Sequence[StatementReply]) -> Done:
    del replies
    return NOTHING_LEFT


@dataclass
class RecordingJudge:
    """Says what `verdict`, `later` and `after` say.

    Attributes:
        reading: As of `Judge`.
        learns: What `learn` sets it to.
        session: What it may ask the source by.
        verdict: What `judge` says.
        later: What `judge_later` says.
        after: What `done` says.
        unknown: What `unjudged` says.
        resetting: What `reset` does.
        calls: Names of what was called, in order.
        statements: What was judged, packet by packet.
        replies: What was told of each packet.
        content: Of local files; None is an end.
        databases: That were used.
        hides_gtids: As of `Judge`.
        reads_long_texts: As of `Judge`.
        unseen_now: What `unseen` says.
        has_passed: Whether `passed` was called.
    """

    reading: TextReading | None = MARIADB
    learns: TextReading = MARIADB
    session: HandlerSession | None = None
    verdict: Callable[[Sequence[ClientStatement]], Verdict | None] = _let_run
    later: Callable[[Sequence[ClientStatement]], Awaitable[Verdict]] | None = None
    after: Callable[[Sequence[StatementReply]], Done] = _nothing_left
    unknown: Verdict = PASS
    resetting: Callable[[], Awaitable[None]] | None = None
    calls: list[str] = field(default_factory=list)
    statements: list[tuple[ClientStatement, ...]] = field(default_factory=list)
    replies: list[tuple[StatementReply, ...]] = field(default_factory=list)
    content: list[bytes | None] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)
    hides_gtids: bool = False
    reads_long_texts: bool = False
    unseen_now: Unseen | None = None
    has_passed: bool = False

    @property
    def texts(self) -> list[str]:
        """Texts of all statements that were judged."""
        return [each.text for packet in self.statements for each in packet]

    async def learn(self) -> None:
        """As of `Judge`."""
        self.calls.append("learn")
        self.reading = self.learns

    async def reset(self) -> None:
        """As of `Judge`."""
        self.calls.append("reset")
        if self.resetting is not None:
            await self.resetting()

    def judge(self, statements: Sequence[ClientStatement]) -> Verdict | None:
        """As of `Judge`."""
        self.calls.append("judge")
        self.statements.append(tuple(statements))
        return self.verdict(statements)

    async def judge_later(self, statements: Sequence[ClientStatement]) -> Verdict:
        """As of `Judge`."""
        self.calls.append("judge later")
        assert self.later is not None, "the test has not said so"
        return await self.later(statements)

    async def shown(self, statement: str, result: ResultSet) -> RowsAnswer:
        """As of `Judge`."""
        del statement
        return RowsAnswer(result.heads, result.rows)

    def repeat(
        self, statements: Sequence[RepeatedStatement], ended: PassedEnds | None = None
    ) -> None:
        """As of `Judge`."""
        self.calls += [] if ended is None else [f"ended {ended.number} by {ended.told}"]
        self.calls += [
            f"repeat {effect} with {insert_id}: {text}" for text, effect, insert_id in statements
        ]

    def passed(self) -> None:
        """As of `Judge`."""
        self.has_passed = True

    def go_on(self, text: str, effect: object = None) -> None:
        """As of `Judge`."""
        self.calls.append(f"go on with {text}" + (f" as {effect}" if effect else ""))

    def done(self, replies: Sequence[StatementReply]) -> Done:
        """As of `Judge`."""
        self.calls.append("done")
        self.replies.append(tuple(replies))
        return self.after(replies)

    def done_at_once(self, ok: OkFields) -> bool:
        """As of `Judge`: it is told by `done`."""
        del ok
        return False

    def local_data(self, data: bytes) -> None:
        """As of `Judge`."""
        self.content.append(data or None)

    def used(self, database: str) -> None:
        """As of `Judge`."""
        self.databases.append(database)

    def unseen(self) -> Unseen | None:
        """As of `Judge`."""
        return self.unseen_now

    def stumbled(self) -> None:
        """As of `Judge`."""
        self.calls.append("stumbled")

    async def unjudged(self) -> Verdict:
        """As of `Judge`."""
        self.calls.append("unjudged")
        return self.unknown

    async def ended(self) -> None:
        """As of `Judge`."""
        self.calls.append("ended")


class JudgingHandler:
    """Answers nothing itself.

    Args:
        find: Gives the judge of a session.
    """

    def __init__(self, find: Callable[[HandlerSession], Judge | None]) -> None:
        self._find = find

    @property
    def has_tables_info(self) -> bool:
        """As of `Handler`."""
        return False

    def judge(self, session: HandlerSession) -> Judge | None:
        """As of `Handler`."""
        return self._find(session)

    async def answer(self, session: HandlerSession, statement: str) -> Answer | None:
        """As of `Handler`."""
        del session, statement
        return None

    async def register(self, session: HandlerSession) -> None:
        """All may."""

    async def gtid_position(self, session: HandlerSession) -> Position | None:
        """As of `Handler`."""
        del session
        return None

    async def gtid_position_now(self, session: HandlerSession) -> Position | None:
        """As of `Handler`."""
        del session
        return None

    async def binlog_format(self, session: HandlerSession) -> str | None:
        """As of `Handler`."""
        del session
        return None

    async def gtid_purged(self, session: HandlerSession) -> Position | None:
        """As of `Handler`."""
        del session
        return None

    async def gtid_position_at(
        self, session: HandlerSession, place: FilePosition
    ) -> Position | None:
        """As of `Handler`."""
        del session, place
        return None

    async def snapshot(self, session: HandlerSession, place: FilePosition) -> FilePosition | None:
        """As of `Handler`."""
        del session, place
        return None

    async def answers(self, session: HandlerSession, statement: str) -> bool:
        """As of `Handler`."""
        del session, statement
        return False

    def killed(self, thread_id: int) -> None:
        """As of `Handler`."""

    async def dump(
        self, session: HandlerSession, command: BinlogDump | BinlogDumpGtid, send: Send
    ) -> bytes:
        """As of `Handler`."""
        del session, command, send
        raise StatementError("there is no binlog")


class JudgingPort:
    """A port before a source whose sessions have judges, for the time of a `with` block.

    Attributes:
        judges: Of its sessions, in order.
        judge: Makes them.
    """

    def __init__(
        self, source: PrivateServer, judge: Callable[[HandlerSession], RecordingJudge | None]
    ) -> None:
        self._source = source
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judging port")
        self.judges: list[RecordingJudge] = []
        self.judge = judge
        self.port = 0

    def connect(self, **options: Any) -> Connection[Cursor]:
        """Log in as root with autocommit, unless the options say otherwise."""
        return pymysql.connect(
            **{
                "host": "127.0.0.1",
                "port": self.port,
                "user": "root",
                "autocommit": True,
                **options,
            }
        )

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.run(self._gateway.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_TIMEOUT_S)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_TIMEOUT_S)

    async def _start(self) -> None:
        settings = GatewaySettings(
            port=0, source_host=self._source.host, source_port=self._source.port
        )
        self._gateway = Gateway(settings, JudgingHandler(self._find))
        await self._gateway.start()
        self.port = self._gateway.port

    def _find(self, session: HandlerSession) -> RecordingJudge | None:
        judge = self.judge(session)
        if judge is not None:
            judge.session = session
            self.judges.append(judge)
        return judge

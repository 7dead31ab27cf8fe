"""Statements of some megabytes: they are read once, and not in the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest
from pymysql.constants import CLIENT

from binlane.cli.main import main
from binlane.live.gateway import prepared_statements as prepared
from binlane.live.gateway.client_statements import UncutStatements
from binlane.live.gateway.judge import TextReading
from binlane.log.codec.packets.execution import Execution
from binlane.log.codec.types import ColumnType
from binlane.statements.policy.refusals import NO_OUTCOME, Outcome
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.session.report import StatementPlan
from binlane.statements.sql import reading
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tokens import LONG
from tests.judged_statements import judging, run_judged
from tests.raw_client import RawClient
from tests.servers import ServerFactory, execute

pytestmark = pytest.mark.system


def test_a_long_statement_is_read_in_a_thread(
    servers: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = servers.start("source")
    assert main(["setup", "--quiet", source.url]) == 0
    execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(20))")
    readers: list[str] = []
    read = reading._read

    def noted(text: str, database: str, dialect: Dialect) -> StatementFacts:
        if len(text) > 100_000:
            readers.append(threading.current_thread().name)
        return read(text, database, dialect)

    monkeypatch.setattr(reading, "_read", noted)
    insert, other = (
        "INSERT INTO t VALUES "
        + ",".join(f"({number}, 'x;')" for number in range(first, first + 20_000))
        for first in (0, 20_000)
    )
    statements = ("INSERT INTO t VALUES (-1, 'a')", insert, insert, other)
    heard, answers = run_judged(source, "d", [(False, each) for each in statements])
    assert [answer[1] for answer in answers] == [1, 20_000, 1062, 20_000]
    assert [name.rpartition("_")[0] for name in readers] == ["long texts"] * 3
    # The one that failed makes nothing.
    told: list[Any] = list(heard.told)
    (done, failed, again) = [each for each in told if each[0] == "done"][1:]
    assert (done[2], failed[2], again[2]) == (False, True, False)
    for each, text in ((done, insert), (again, other)):
        ((_, binlogs, _, _),) = each[3]
        assert binlogs["all"][0].events[-1].body.endswith(text.encode())


def test_many_statements_of_a_packet_take_turns_with_other_sessions(
    servers: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is judged once and followed once, a few in one turn of the event loop."""
    source = servers.start("source")
    assert main(["setup", "--quiet", source.url]) == 0
    executed: Counter[int] = Counter()
    cutters: list[str] = []
    turn, is_over = 0, False
    execute_it = PlanningSession.execute

    def noted(self: PlanningSession, text: str, outcome: Outcome = NO_OUTCOME) -> StatementPlan:
        if text == "SET @a = 1":
            executed[turn] += 1
        return execute_it(self, text, outcome)

    cut = UncutStatements.cut

    def noted_cut(self: UncutStatements) -> list[str]:
        cutters.extend(
            [threading.current_thread().name.rpartition("_")[0]] * (len(self.text) > LONG)
        )
        return cut(self)

    async def count_turns() -> None:
        nonlocal turn
        while not is_over:
            turn += 1
            await asyncio.sleep(0)

    async def begin() -> None:
        tasks.append(asyncio.ensure_future(count_turns()))

    async def end() -> None:
        await tasks[0]

    monkeypatch.setattr(PlanningSession, "execute", noted)
    monkeypatch.setattr(UncutStatements, "cut", noted_cut)
    tasks: list[asyncio.Future[None]] = []
    with (
        judging(source) as (port, _),
        port.connect(client_flag=CLIENT.MULTI_STATEMENTS) as client,
        client.cursor() as cursor,
    ):
        cursor.execute("SELECT 1")
        port.run(begin())
        for count in (1_600, 400):
            executed.clear()
            cursor.execute(";".join(["SET @a = 1"] * count) + "; SELECT @a")
            while cursor.nextset():
                pass
            assert cursor.fetchall() == ((1,),)
            # It waits until the last one is followed.
            cursor.execute("SELECT 2")
            assert executed.total() == 2 * count
            assert max(executed.values()) <= 10
        is_over = True
        port.run(end())
    # The other one is not long.
    assert cutters == ["long texts"]


def test_many_values_are_put_into_a_text_in_a_thread(
    servers: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = servers.start("source")
    assert main(["setup", "--quiet", source.url]) == 0
    execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a BIGINT PRIMARY KEY)")
    writers: list[str] = []
    find = prepared._find_parameters

    def noted(one: prepared.PreparedStatement, reading: TextReading) -> None:
        writers.append(threading.current_thread().name.rpartition("_")[0])
        find(one, reading)

    monkeypatch.setattr(prepared, "_find_parameters", noted)
    count = 20_000
    with judging(source) as (port, parts), RawClient(port.port, database="d") as client:
        statement = client.prepare("INSERT INTO t VALUES " + ",".join(["(?)"] * count))
        assert writers == []
        values = [range(count), range(count, 2 * count)]
        for each in values:
            types = (ColumnType.LONGLONG,) * count
            client.execute(Execution(statement_id=statement, types=types, values=tuple(each)))
    assert writers == ["long texts"]
    told: Any = parts.attributions
    texts = [
        binlogs["all"][0].events[-1].body.decode()
        for kind, _, *_, plans in told.heard.told
        if kind == "intend"
        for _, binlogs, _, _ in plans
    ]
    assert [text.partition(" VALUES ")[2] for text in texts] == [
        ",".join(f"({value})" for value in each) for each in values
    ]


def test_what_is_prepared_as_a_text_is_read_in_a_thread(
    servers: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = servers.start("source")
    assert main(["setup", "--quiet", source.url]) == 0
    execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
    readers: list[str] = []
    read = reading._read

    def noted(text: str, database: str, dialect: Dialect) -> StatementFacts:
        if len(text) > LONG:
            readers.append(threading.current_thread().name.rpartition("_")[0])
        return read(text, database, dialect)

    monkeypatch.setattr(reading, "_read", noted)
    insert = "INSERT INTO t VALUES " + ",".join(f"({number})" for number in range(10_000))
    statements = ("SET @a = 1", f"PREPARE s FROM '{insert}'", "EXECUTE s")
    run_judged(source, "d", [(False, each) for each in statements])
    assert execute(source, "SELECT COUNT(*) FROM d.t") == ((10_000,),)
    assert set(readers) == {"long texts"}

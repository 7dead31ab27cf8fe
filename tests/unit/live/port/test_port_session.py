"""Sessions of clients, judged and followed beside a source that a fake stands for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import Mock

import pytest

from binlane.errors import StatementError
from binlane.live.gateway.answers import OkAnswer, RowsAnswer
from binlane.live.gateway.judge import (
    AS_IT_IS,
    PASS,
    ClientStatement,
    Give,
    Pass,
    Refuse,
    RunVerdict,
    StatementReply,
)
from binlane.live.port.attribution_state import ReadGroup
from binlane.live.port.port_session import PortSession
from binlane.live.port.session_groups import Unattributed
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.types import EventType
from binlane.names import TableName
from binlane.positions import Gtid, GtidPosition
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.scope import Scope
from binlane.statements.session.group_plan import GroupPlan, RowsPart, TextPart
from binlane.statements.session.plan_bytes import EncodedPlans
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.sql.servers import LoggingMode
from tests.fake_source import Conversation, FakeClient, FakePort, FakeSource, result

ITEMS: Final = "CREATE TABLE `items` (`id` int NOT NULL AUTO_INCREMENT, `v` varchar(80), PRIMARY KEY (`id`)) ENGINE=InnoDB"
KEPT: Final = "CREATE TABLE `kept` (`id` int NOT NULL, PRIMARY KEY (`id`)) ENGINE=MyISAM"
STATEMENTS: Final = Definition(
    name="statements", scope=Scope.everything(), logging_mode=LoggingMode.STATEMENT, log_id=1
)
ROWS: Final = replace(STATEMENTS, name="rows", logging_mode=LoggingMode.ROW, log_id=2)
MIXED: Final = replace(STATEMENTS, name="mixed", logging_mode=LoggingMode.MIXED, log_id=3)
INSERT: Final = "INSERT INTO items (v) VALUES ('{}')"
IN_TRANSACTION: Final = int(ServerStatus.IN_TRANSACTION)
QUIET: Final = StatementReply()
ROWS_REPLY: Final = StatementReply(is_result_set=True)

Test = Callable[[], Coroutine[Any, Any, None]]


def in_a_loop(test: Test) -> Callable[[], None]:
    """Run a test in an event loop of its own."""

    def run() -> None:
        asyncio.run(test())

    run.__name__ = test.__name__  # not by `wraps`: pytest would see a coroutine
    return run


@asynccontextmanager
async def session(
    *definitions: Definition, is_set_up: bool = True
) -> AsyncIterator[tuple[Conversation, FakePort]]:
    """A client's session through a port, before anything was sent."""
    source, client = FakeSource(ITEMS, KEPT), FakeClient()
    port = FakePort(
        source=source, definitions=definitions or (STATEMENTS, ROWS), is_set_up=is_set_up
    )
    judge = PortSession(client, port.find_parts)
    try:
        yield Conversation(judge, client, source), port
    finally:
        await judge.ended()
        await port.stop()


def plan_of(port: FakePort, sequence: int, thread_id: int = 7) -> GroupPlan | Unattributed:
    """The plan of a group that the source logged."""
    gtid = Gtid(0, 1, sequence)
    group = ReadGroup(gtid, thread_id, is_commit=True)
    port.attributions.read([group], GtidPosition((gtid,)))
    return port.attributions.find(group, wait_s=0.0)


def texts_in(plan: GroupPlan | Unattributed, name: str = "statements") -> list[str]:
    """Statements that a binlog has of a group as text."""
    assert isinstance(plan, GroupPlan), plan
    return [
        event.body[-_query_length(event.body) :].decode()
        for part in plan.binlogs.get(name, ())
        if isinstance(part, TextPart)
        for event in part.events
        if event.type_code == EventType.QUERY
    ]


def _query_length(body: bytes) -> int:
    # Behind the 13 bytes of the head: the status variables, and the database with its NUL.
    variables = int.from_bytes(body[11:13], "little")
    return len(body) - 13 - variables - body[8] - 1


# Relayed ------------------------------------------------------------------------------------------


@in_a_loop
async def test_all_passes_where_the_source_was_not_set_up() -> None:
    async with session(is_set_up=False) as (client, _):
        assert await client.run(INSERT.format(1)) == PASS
        assert client.judge.judge([ClientStatement("DROP TABLE items")]) == PASS
        assert client.judge.reading is not None
        assert not client.judge.reads_long_texts
        assert client.client.statements == []
        rows = result(["Variable_name", "Value"], ["binlog_format", "ROW"])
        shown = await client.judge.shown("SHOW VARIABLES", rows)
        assert shown.rows == rows.rows


# Unread -------------------------------------------------------------------------------------------


@in_a_loop
async def test_a_session_that_only_reads_is_not_followed() -> None:
    async with session() as (client, _):
        assert await client.run("SELECT 1") == PASS
        assert client.judge.reading is None
        assert client.client.statements == []


@in_a_loop
async def test_writes_pass_where_all_binlogs_log_everything_as_rows() -> None:
    async with session(ROWS) as (client, port):
        assert isinstance(await client.run(INSERT.format(1)), Pass)
        assert client.judge.judge([ClientStatement(INSERT.format(2))]) == PASS
        assert client.client.statements == []
        port.definitions = (STATEMENTS,)
        assert isinstance(await client.run(INSERT.format(3)), RunVerdict)
        assert client.client.statements


@in_a_loop
async def test_a_session_is_followed_from_its_first_write_on() -> None:
    async with session() as (client, port):
        assert await client.run(INSERT.format("a"), client.wrote(insert_id=1)) == AS_IT_IS
        plan = plan_of(port, 11)
        assert texts_in(plan) == [INSERT.format("a")]
        assert isinstance(plan, GroupPlan)
        assert plan.binlogs.get("rows", (RowsPart(0),)) == (RowsPart(0),)
        assert client.judge.reading is not None
        assert client.judge.hides_gtids


@pytest.mark.parametrize("value", ["1", "ON", "true"])
def test_a_session_that_turns_autocommit_on_is_not_followed(value: str) -> None:
    @in_a_loop
    async def run() -> None:
        async with session() as (client, _):
            assert await client.run(f"SET autocommit = {value}", QUIET) == PASS
            assert client.client.statements == []

    run()


@pytest.mark.parametrize(
    "text",
    [
        "SET autocommit = 0",
        "SET autocommit = @@sql_log_bin",
        "SET GLOBAL autocommit = 1",
        "SET autocommit = 1, sql_log_bin = 1",
    ],
)
def test_a_session_that_sets_more_is_followed(text: str) -> None:
    @in_a_loop
    async def run() -> None:
        async with session() as (client, _):
            assert isinstance(await client.run(text, QUIET), RunVerdict)
            assert client.client.statements

    run()


@in_a_loop
async def test_following_begins_with_one_question() -> None:
    async with session() as (client, _):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        own, told, telling = client.client.statements
        assert own.startswith("SELECT DATABASE(), VERSION(), @@in_transaction, @@SESSION.")
        assert "@@timestamp" in own
        assert "gtid_binlog_pos" in told
        assert telling.startswith("SET SESSION session_track_system_variables")


@in_a_loop
async def test_a_source_that_greets_as_another_one_is_asked_twice() -> None:
    async with session() as (client, port):
        client.client.values["VERSION()"] = "10.11.2-MariaDB-log"
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        assert [one.count("@@timestamp") for one in client.client.statements] == [1, 1, 0, 0]
        assert texts_in(plan_of(port, 11)) == [INSERT.format(1)]


@in_a_loop
async def test_a_new_session_sets_what_others_have_set_before_it() -> None:
    sets = ["SET NAMES utf8mb4", "SET sql_mode = ''", "SET SESSION TRANSACTION READ WRITE", "USE d"]
    async with session() as (first, port):
        other = FakeClient(8)
        judge = PortSession(other, port.find_parts)
        second = Conversation(judge, other, port.source)
        for one in (first, second):
            await one.run("SET autocommit = 0", QUIET)
        for text in sets:
            assert isinstance(await first.run(text, QUIET), RunVerdict)
        for text in sets:
            # At once: the model is not asked to carry it out.
            assert isinstance(judge.judge([ClientStatement(text)]), RunVerdict)
            await second.answer(QUIET)
        await second.run("BEGIN", StatementReply(status=IN_TRANSACTION))
        await second.run(
            INSERT.format("x"), StatementReply(affected_rows=1, insert_id=5, status=IN_TRANSACTION)
        )
        await second.run("COMMIT", StatementReply(tracked={"last_gtid": port.source.logged()}))
        assert texts_in(plan_of(port, 11, 8)) == [INSERT.format("x")]
        await judge.ended()


# Followed -----------------------------------------------------------------------------------------


@in_a_loop
async def test_writes_of_a_known_shape_are_judged_at_once() -> None:
    async with session() as (client, port):
        for number in range(4):
            await client.run(INSERT.format(number), client.wrote(insert_id=number + 1))
        asked = len(client.client.statements)
        text = INSERT.format("known")
        assert client.judge.judge([ClientStatement(text)]) == AS_IT_IS
        await client.answer(client.wrote(insert_id=9))
        assert len(client.client.statements) == asked
        plan = plan_of(port, 15)
        assert texts_in(plan) == [text]
        assert isinstance(plan, GroupPlan)
        (part,) = plan.binlogs["statements"]
        assert isinstance(part, TextPart)
        assert part.events[0].body == b"\x02" + (9).to_bytes(8, "little")


@in_a_loop
async def test_a_shape_that_one_session_has_run_is_known_in_another_one() -> None:
    async with session() as (client, port):
        for number in range(3):
            await client.run(INSERT.format(number), client.wrote(insert_id=number + 1))
        other = FakeClient(thread_id=8)
        other.values |= {"@@pseudo_thread_id": "8", "@@timestamp": "1800000001.5"}
        talk = Conversation(PortSession(other, port.find_parts), other, port.source)
        await talk.run("UPDATE items SET v = 'x' WHERE id = 2")
        text = INSERT.format("other")
        # The state of the session is looked up first; from then on its statements are known.
        await talk.run(INSERT.format("first"), talk.wrote(insert_id=8))
        assert talk.judge.judge([ClientStatement(text)]) == AS_IT_IS
        await talk.answer(talk.wrote(insert_id=9))
        first, plan = plan_of(port, 15, thread_id=8), plan_of(port, 16, thread_id=8)
        assert (texts_in(first), texts_in(plan)) == ([INSERT.format("first")], [text])
        assert isinstance(plan, GroupPlan)
        (part,) = plan.binlogs["statements"]
        assert isinstance(part, TextPart)
        assert part.events[0].body == b"\x02" + (9).to_bytes(8, "little")
        assert part.events[1].body[:4] == (8).to_bytes(4, "little")
        await talk.judge.ended()


@in_a_loop
async def test_begin_and_an_empty_commit_are_known() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        begun, read = (
            StatementReply(status=IN_TRANSACTION, is_result_set=is_read)
            for is_read in (False, True)
        )
        for _ in range(4):
            await client.run("BEGIN", begun)
            await client.run("SELECT v FROM items WHERE id = 2", read)
            await client.run("COMMIT", QUIET)
        statements = [
            ("BEGIN", begun),
            ("SELECT v FROM items WHERE id = 3", read),
            ("COMMIT", QUIET),
        ]
        for text, reply in statements:
            assert client.judge.judge([ClientStatement(text)]) == AS_IT_IS
            await client.answer(reply)
        await client.run("BEGIN", begun)
        inserted = StatementReply(status=IN_TRANSACTION, affected_rows=1, insert_id=2)
        await client.run(INSERT.format(2), inserted)
        for _ in range(3):
            await client.run("SELECT v FROM items WHERE id = 2", read)
        await client.run("COMMIT", client.wrote(rows=0))
        assert texts_in(plan_of(port, 12)) == [INSERT.format(2)]


@in_a_loop
async def test_a_read_that_ended_the_transaction_is_not_taken_for_a_known_one() -> None:
    async with session() as (client, port):
        begun, read = (
            StatementReply(status=IN_TRANSACTION, is_result_set=is_read)
            for is_read in (False, True)
        )
        inserted = StatementReply(status=IN_TRANSACTION, affected_rows=1, insert_id=2)
        for _ in range(3):
            await client.run("BEGIN", begun)
            await client.run(INSERT.format(2), inserted)
            await client.run("SELECT v FROM items WHERE id = 2", read)
            await client.run("COMMIT", client.wrote(rows=0))
        await client.run("BEGIN", begun)
        await client.run(INSERT.format("rolled back"), inserted)
        deadlock = StatementReply(errno=1213, message="Deadlock found")
        await client.run("SELECT v FROM items WHERE id = 2", deadlock)
        await client.run(INSERT.format("after"), client.wrote(insert_id=8))
        plan = plan_of(port, 14)
        assert isinstance(plan, Unattributed) or texts_in(plan) == [INSERT.format("after")]


@in_a_loop
async def test_a_known_write_that_fails_or_changes_nothing_makes_no_group() -> None:
    async with session() as (client, port):
        for number in range(3):
            await client.run(INSERT.format(number), client.wrote(insert_id=number + 1))
        await client.run(
            INSERT.format("failed"), StatementReply(errno=1062, message="Duplicate entry")
        )
        update = "UPDATE items SET v = 'x' WHERE id = {}"
        for number in range(3):
            await client.run(update.format(number))
        none = StatementReply(info="Rows matched: 1  Changed: 0  Warnings: 0")
        await client.run(update.format(7), none)
        await client.run(INSERT.format("after"), client.wrote(insert_id=8))
        assert texts_in(plan_of(port, 17)) == [INSERT.format("after")]


@in_a_loop
async def test_known_selects_in_a_transaction_and_out_of_it() -> None:
    async with session() as (client, _):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        for _ in range(3):
            assert await client.run("SELECT v FROM items WHERE id = 1", ROWS_REPLY) == AS_IT_IS
        await client.run("BEGIN", StatementReply(status=IN_TRANSACTION))
        for _ in range(3):
            reply = StatementReply(status=IN_TRANSACTION, is_result_set=True)
            assert await client.run("SELECT v FROM items WHERE id = 2", reply) == AS_IT_IS
        await client.run("COMMIT", QUIET)


@in_a_loop
async def test_a_transaction_is_one_group() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        await client.run("BEGIN", StatementReply(status=IN_TRANSACTION))
        for number in (2, 3):
            reply = StatementReply(status=IN_TRANSACTION, affected_rows=1, insert_id=number)
            await client.run(INSERT.format(number), reply)
        await client.run("COMMIT", client.wrote(rows=0))
        assert texts_in(plan_of(port, 12)) == [INSERT.format(2), INSERT.format(3)]


_BEGUN: Final = StatementReply(status=IN_TRANSACTION)
_UPDATE: Final = "UPDATE items SET v = '{}' WHERE id = 2"
_CHANGED: Final = StatementReply(
    status=IN_TRANSACTION, affected_rows=1, info="Rows matched: 1  Changed: 1  Warnings: 0"
)
_UNCHANGED: Final = StatementReply(
    status=IN_TRANSACTION, info="Rows matched: 1  Changed: 0  Warnings: 0"
)
_SPECIAL: Final[dict[str, list[tuple[str, StatementReply]]]] = {
    "nothing": [],
    "a read": [("SELECT v FROM items", _BEGUN._replace(is_result_set=True))],
    "the same again": [("UPDATE items SET v = 'same' WHERE id = 2", _CHANGED)] * 2,
    "a new shape": [("DELETE FROM items WHERE id = 1 AND v = 'x'", _CHANGED)],
    "no changed row": [(_UPDATE.format("as it was"), _UNCHANGED)],
    "an error": [(INSERT.format("twice"), StatementReply(status=IN_TRANSACTION, errno=1062))],
    "a deadlock": [
        (_UPDATE.format("late"), StatementReply(errno=1213, message="Deadlock found")),
        ("BEGIN", _BEGUN),
    ],
    "a savepoint": [
        ("SAVEPOINT here", _BEGUN),
        (_UPDATE.format("undone"), _CHANGED),
        ("ROLLBACK TO here", _BEGUN),
    ],
    "a table without transactions": [("INSERT INTO kept VALUES (1)", _CHANGED)],
    "a unique value": [("UPDATE items SET v = UUID() WHERE id = 2", _CHANGED)],
    "a text in other bytes": [(_UPDATE.format("größer"), _CHANGED)],
    "an end and a beginning": [("ROLLBACK", QUIET), ("BEGIN", _BEGUN)],
}


def _without_seconds(plan: GroupPlan | Unattributed) -> GroupPlan | Unattributed:
    """A plan with all but the second at which texts without rows ran: that is another one in another run."""
    if isinstance(plan, Unattributed):
        return plan
    binlogs = {
        name: tuple(
            part._replace(timestamp=bool(part.timestamp)) if isinstance(part, TextPart) else part
            for part in parts
        )
        for name, parts in plan.binlogs.items()
    }
    return replace(plan, binlogs=binlogs)


async def _plans_of_transactions(
    special: list[tuple[str, StatementReply]], end: str
) -> tuple[list[GroupPlan | Unattributed], list[bool]]:
    """The plans of transactions, some with something special, and whether each end was known."""
    plans: list[GroupPlan | Unattributed] = []
    are_known: list[bool] = []
    async with session(STATEMENTS, ROWS, MIXED) as (client, port):
        intend = port.attributions.intend
        port.attributions.intend = heard = Mock(wraps=intend)  # type: ignore[method-assign]
        await client.run(INSERT.format("first"), client.wrote(insert_id=1))
        plans.append(plan_of(port, 11))
        for number in range(12):
            await client.run("BEGIN", _BEGUN)
            inserted = _BEGUN._replace(affected_rows=1, insert_id=10 + 2 * number)
            await client.run(INSERT.format(f"{number}"), inserted)
            for text, reply in special if number % 3 else ():
                await client.run(text, reply)
            await client.run(_UPDATE.format(f"of {number}"), _CHANGED)
            last = _BEGUN._replace(affected_rows=1, insert_id=11 + 2 * number)
            await client.run(INSERT.format(f"more of {number}"), last)
            is_logged = end == "COMMIT"
            await client.run(end, client.wrote(rows=0) if is_logged else QUIET)
            if is_logged:
                plans.append(plan_of(port, 12 + number))
                are_known.append(isinstance(heard.call_args.args[2], EncodedPlans))
    return plans, are_known


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("special", _SPECIAL)
def test_known_transactions_have_the_plans_of_first_ones(
    special: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, are_known = asyncio.run(_plans_of_transactions(_SPECIAL[special], end))
    monkeypatch.setattr(PlanningSession, "plain", lambda *_: None)
    first, are_first_known = asyncio.run(_plans_of_transactions(_SPECIAL[special], end))
    assert list(map(_without_seconds, known)) == list(map(_without_seconds, first))
    assert not any(are_first_known)
    assert not are_known or are_known[-3], "that of the last transaction without anything special"


@in_a_loop
async def test_a_statement_that_a_binlog_cannot_hold_is_refused() -> None:
    scoped = replace(STATEMENTS, scope=Scope.nothing().with_tables([TableName("d", "items")]))
    async with session(scoped) as (client, _):
        verdict = await client.run("INSERT INTO items SELECT id, 'x' FROM kept")
        assert isinstance(verdict, Refuse)
        assert "binlane refuses it" in verdict.error.hint
        assert client.sent == []
        assert await client.run(INSERT.format(1), client.wrote(insert_id=1)) == AS_IT_IS


@in_a_loop
async def test_an_unknown_table_is_the_sources_to_refuse() -> None:
    async with session() as (client, _):
        gone = StatementReply(errno=1146, message="Table 'd.gone' doesn't exist")
        assert await client.run("INSERT INTO gone VALUES (1)", gone) == AS_IT_IS
        assert await client.run(INSERT.format(1), client.wrote(insert_id=1)) == AS_IT_IS


@in_a_loop
async def test_ddl_makes_the_objects_unknown() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        asked = len(client.source.asked)
        await client.run("ALTER TABLE items ADD COLUMN w INT", client.wrote(rows=0))
        await client.run(INSERT.format(2), client.wrote(insert_id=2))
        assert len(client.source.asked) > asked
        assert texts_in(plan_of(port, 13)) == [INSERT.format(2)]


@in_a_loop
async def test_all_statements_of_a_packet_are_judged_before_one_runs() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(0), client.wrote(insert_id=1))
        texts = [INSERT.format(number) for number in range(1, 7)]
        assert await client.verdict(*texts) == AS_IT_IS
        await client.answer(*(client.wrote(insert_id=number) for number in range(2, 8)))
        assert texts_in(plan_of(port, 17)) == []  # all are rows
        assert await client.run(INSERT.format(7), client.wrote(insert_id=9)) == AS_IT_IS
        assert texts_in(plan_of(port, 18)) == [INSERT.format(7)]


@in_a_loop
async def test_binlogs_that_change_are_those_of_the_next_statement() -> None:
    async with session(STATEMENTS) as (client, port):
        for number in range(3):
            await client.run(INSERT.format(number), client.wrote(insert_id=number + 1))
        port.definitions = (STATEMENTS, replace(STATEMENTS, name="second", log_id=9))
        await client.run(INSERT.format("both"), client.wrote(insert_id=5))
        plan = plan_of(port, 14)
        assert texts_in(plan) == texts_in(plan, "second") == [INSERT.format("both")]


# Variables and warnings ---------------------------------------------------------------------------


@in_a_loop
async def test_the_format_is_the_binlogs_and_not_the_sources() -> None:
    async with session() as (client, port):
        verdict = await client.run("SET SESSION binlog_format = 'ROW'", QUIET)
        assert verdict == RunVerdict(text="SET SESSION binlog_format = ROW")
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        plan = plan_of(port, 11)
        assert texts_in(plan) == []
        rows = result(["Variable_name", "Value"], ["binlog_format", "MIXED"])
        client.client.answers = lambda text: rows if text.startswith("SHOW") else None
        given = await client.run("SHOW VARIABLES LIKE 'binlog_format'")
        assert isinstance(given, Give)
        assert isinstance(given.answer, RowsAnswer)
        assert given.answer.rows == [(b"binlog_format", b"ROW")]


@in_a_loop
async def test_a_global_format_is_kept_for_later_sessions() -> None:
    async with session() as (client, port):
        given = await client.run("SET GLOBAL binlog_format = 'MIXED'")
        assert isinstance(given, Give)
        assert isinstance(given.answer, OkAnswer)
        assert port.global_values == {"binlog_format": "MIXED"}
        assert "SET GLOBAL binlog_format = @@GLOBAL.binlog_format" in client.client.statements


@in_a_loop
async def test_a_note_of_an_unsafe_statement_is_among_the_warnings() -> None:
    async with session() as (client, _):
        text = "INSERT INTO items (v) VALUES (UUID())"
        assert isinstance(await client.verdict(text), RunVerdict)
        assert await client.answer(client.wrote(insert_id=1)) == 1
        heads = ["Level", "Code", "Message"]

        def answers(statement: str) -> object:
            if statement == "SHOW WARNINGS":
                return result(heads)
            return result(["@@session.warning_count"], ["0"]) if "COUNT" in statement else None

        client.client.answers = answers  # type: ignore[assignment]  # None, too
        given = await client.run("SHOW WARNINGS")
        assert isinstance(given, Give)
        assert isinstance(given.answer, RowsAnswer)
        (row,) = given.answer.rows
        assert row[1] == b"1592"


# Out of step --------------------------------------------------------------------------------------


@in_a_loop
async def test_a_session_out_of_step_begins_anew() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        await client.run("BEGIN", StatementReply(status=IN_TRANSACTION))
        # The transaction is over, and the model does not know why.
        await client.run(INSERT.format(0), StatementReply(affected_rows=1, insert_id=1))
        assert client.judge.judge([ClientStatement(INSERT.format(2))]) is None
        asked = len(client.client.statements)
        await client.run(INSERT.format(2), client.wrote(insert_id=2))
        assert any("DATABASE(), VERSION()" in one for one in client.client.statements[asked:])
        assert texts_in(plan_of(port, 12)) == [INSERT.format(2)]


@in_a_loop
async def test_nothing_of_a_transaction_out_of_step_is_planned() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        await client.run("BEGIN", StatementReply(status=IN_TRANSACTION))
        # Its transaction is over, and the reply says that it is not.
        await client.run("COMMIT", StatementReply(status=IN_TRANSACTION))
        reply = StatementReply(status=IN_TRANSACTION, affected_rows=1, insert_id=2)
        await client.run(INSERT.format(2), reply)
        await client.run("COMMIT", client.wrote(rows=0))
        assert isinstance(plan_of(port, 12), Unattributed)
        await client.run(INSERT.format(3), client.wrote(insert_id=3))
        assert texts_in(plan_of(port, 13)) == [INSERT.format(3)]


@in_a_loop
async def test_a_session_that_stumbled_begins_anew() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        assert await client.verdict(INSERT.format(2)) == AS_IT_IS
        client.judge.stumbled()
        verdict = await client.judge.unjudged()
        assert isinstance(verdict, Refuse)
        assert "binlane failed to find out" in str(verdict.error)
        await client.run(INSERT.format(3), client.wrote(insert_id=3))
        assert texts_in(plan_of(port, 12)) == [INSERT.format(3)]


@in_a_loop
async def test_a_stumble_before_anything_is_known() -> None:
    async with session(ROWS) as (client, _):
        client.judge.stumbled()
        assert isinstance(await client.judge.unjudged(), Pass)
        assert isinstance(await client.run(INSERT.format(1)), Pass)


@in_a_loop
async def test_a_source_that_cannot_be_asked_is_told_to_the_client() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        client.source.problem = StatementError("the source is gone")
        with pytest.raises(StatementError, match="the source is gone"):
            await client.run("DELETE FROM kept")
        client.source.problem = None
        await client.run(INSERT.format(2), client.wrote(insert_id=2))
        assert texts_in(plan_of(port, 12)) == [INSERT.format(2)]


# Begin and end ------------------------------------------------------------------------------------


@in_a_loop
async def test_a_reset_session_is_unread_again() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        await client.judge.reset()
        assert client.judge.reading is None
        assert not client.judge.hides_gtids
        assert await client.run("SELECT 1") == PASS
        await client.run(INSERT.format(2), client.wrote(insert_id=2))
        assert texts_in(plan_of(port, 12)) == [INSERT.format(2)]


@in_a_loop
async def test_temporary_tables_end_with_their_session_by_a_mark() -> None:
    async with session(STATEMENTS) as (client, port):
        await client.run("CREATE TEMPORARY TABLE t (id INT)", QUIET)
        await client.run("INSERT INTO t VALUES (1)", StatementReply(affected_rows=1))
        marked = len(client.source.marked)
        assert marked
        await client.judge.ended()
        assert len(client.source.marked) > marked
        assert set(client.source.marked) == {7}
        del port


@in_a_loop
async def test_a_used_database_is_the_next_statements() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        client.judge.used("other")
        client.client.values["DATABASE()"] = "other"
        await client.run("INSERT INTO d.items (v) VALUES ('x')", client.wrote(insert_id=2))
        assert texts_in(plan_of(port, 12)) == ["INSERT INTO d.items (v) VALUES ('x')"]


@in_a_loop
async def test_a_command_that_was_not_sent_makes_no_group() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        assert await client.verdict("DELETE FROM items WHERE id = 3") == AS_IT_IS
        assert await client.answer() == 0
        await client.run(INSERT.format(2), client.wrote(insert_id=2))
        assert texts_in(plan_of(port, 12)) == [INSERT.format(2)]


@in_a_loop
async def test_a_text_in_another_character_set_is_read_in_it() -> None:
    async with session() as (client, port):
        client.client.values |= {
            "@@character_set_client": "latin1",
            "@@collation_connection": "latin1_swedish_ci",
        }
        await client.judge.learn()
        reading = client.judge.reading
        assert reading is not None
        assert reading.character_set == "latin1"
        # The letter has one byte, which is no UTF-8.
        text = INSERT.format("\udce9")
        assert await client.run(text, client.wrote(insert_id=1)) == AS_IT_IS
        plan = plan_of(port, 11)
        assert isinstance(plan, GroupPlan)
        (part,) = plan.binlogs["statements"]
        assert isinstance(part, TextPart)
        assert part.events[-1].body.endswith(b"('\xe9')")


@in_a_loop
async def test_values_of_prepared_statements_that_are_not_known_go_as_rows() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        statement = ClientStatement("INSERT INTO items (v) VALUES (?)", True, False)
        assert client.judge.judge([statement]) is None
        assert await client.judge.judge_later([statement]) == AS_IT_IS
        await client.answer(client.wrote(insert_id=2))
        plan = plan_of(port, 12)
        assert texts_in(plan) == []
        bulk = statement._replace(is_bulk=True)
        verdict = await client.judge.judge_later([bulk])
        assert isinstance(verdict, Refuse)
        assert verdict.error.errno == 4033


@in_a_loop
async def test_prepared_writes_pass_without_their_values_where_all_binlogs_log_rows() -> None:
    async with session(ROWS) as (client, port):
        assert isinstance(await client.run("BEGIN"), Pass)
        prepared = ClientStatement("INSERT INTO items (v) VALUES (?)", True, False)
        assert client.judge.judge([prepared]) is PASS
        assert client.client.statements == []
        port.definitions = (ROWS, STATEMENTS)
        assert client.judge.judge([prepared]) is None


@in_a_loop
async def test_plain_statements_pass_unseen_as_long_as_binlogs_have_all_rows() -> None:
    async with session(ROWS) as (client, port):
        assert client.judge.unseen() is None
        await client.judge.learn()
        unseen = client.judge.unseen()
        assert unseen is not None
        assert unseen.is_plain
        assert unseen.terms is not None
        assert client.judge.reading is None
        assert client.client.statements == []
        assert unseen.terms()
        port.global_values["binlog_format"] = "STATEMENT"
        assert not unseen.terms()
        port.global_values.clear()
        port.definitions = (ROWS, STATEMENTS)
        assert not unseen.terms()
        assert client.judge.unseen() is None
        port.definitions = (ROWS,)
        # What has to be known in any case is asked for, and then each statement is judged.
        await client.judge.learn()
        assert client.client.statements
        assert client.judge.unseen() is None
    async with session(is_set_up=False) as (client, _):
        await client.run(INSERT.format(1))
        unseen = client.judge.unseen()
        assert unseen is not None
        assert not unseen.is_plain
    async with session() as (client, _):
        await client.judge.learn()
        assert client.judge.reading is not None
        assert client.judge.unseen() is None


@in_a_loop
async def test_known_reads_pass_unseen_where_they_change_nothing_of_the_session() -> None:
    async with session() as (client, port):
        read = "SELECT v FROM items WHERE id = {}"
        begun = StatementReply(is_result_set=True, status=2 | IN_TRANSACTION)

        async def reads(number: int, reply: StatementReply = ROWS_REPLY) -> bool:
            statement = ClientStatement(read.format(number), is_prepared=True)
            verdict = client.judge.judge([statement])
            if verdict is None:
                verdict = await client.judge.judge_later([statement])
            assert verdict == AS_IT_IS
            await client.answer(reply)
            return client.judge.unseen() is not None

        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        assert [await reads(number) for number in range(1, 4)] == [False, False, True]
        outside = client.judge.unseen()
        assert outside is not None
        assert outside.terms is not None
        assert not outside.is_plain
        assert await reads(3)
        assert client.judge.unseen() == outside
        # A write is not followed by reads that are known, and a text is as an execution.
        await client.run(INSERT.format(2), client.wrote(insert_id=2))
        assert client.judge.unseen() is None
        await client.run(read.format(5), ROWS_REPLY)
        assert client.judge.unseen() == outside
        # The first read in a transaction is none of them: it begins to work.
        for number in range(2):
            await client.run("BEGIN", begun._replace(is_result_set=False))
            assert client.judge.unseen() is None
            assert not await reads(6, begun)
            passes = [await reads(7, begun) for _ in range(3)]
            assert passes == [bool(number)] * 2 + [True]
            written = StatementReply(affected_rows=1, status=begun.status, insert_id=3 + number)
            await client.run(INSERT.format(8 + number), written)
            await reads(10, begun)
            await client.run("COMMIT", client.wrote(rows=0))
            plan = plan_of(port, 13 + number)
            assert texts_in(plan) == ["BEGIN", INSERT.format(8 + number), "COMMIT"][1:2]
        assert await reads(11)
        assert client.judge.unseen() == outside
        assert outside.terms()
        port.definitions = (replace(STATEMENTS, name="other"),)
        assert not outside.terms()
        assert client.judge.unseen() is None


@in_a_loop
async def test_a_read_that_passed_unseen_is_followed_where_it_came_otherwise() -> None:
    async with session() as (client, port):
        statement = ClientStatement("SELECT v FROM items WHERE id = 1", is_prepared=True)
        begun = StatementReply(status=2 | IN_TRANSACTION)
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        await client.run("BEGIN", begun)
        await client.run(INSERT.format(2), begun._replace(affected_rows=1, insert_id=2))
        for _ in range(3):
            if client.judge.judge([statement]) is None:
                await client.judge.judge_later([statement])
            await client.answer(begun._replace(is_result_set=True))
        assert client.judge.unseen() is not None
        # A deadlock takes the transaction back.
        client.judge.go_on("SELECT v FROM items WHERE id = ?")
        assert client.judge.unseen() is None
        await client.answer(StatementReply(errno=1213, status=2))
        await client.run(INSERT.format(3), client.wrote(insert_id=3))
        assert texts_in(plan_of(port, 12)) == [INSERT.format(3)]


@in_a_loop
async def test_writes_that_go_as_rows_leave_the_character_set_known() -> None:
    scoped = replace(ROWS, scope=Scope.nothing().with_tables([TableName("d", "items")]))
    async with session(scoped) as (client, _):
        for number in range(2):
            await client.run(INSERT.format(number), client.wrote(insert_id=number + 1))
            await client.run("UPDATE items SET v = 'x'", client.wrote(rows=2))
            # Else prepared statements ask the source again and again.
            assert client.judge.reading is not None


@in_a_loop
async def test_a_file_of_the_client_is_in_the_binlog() -> None:
    async with session(STATEMENTS) as (client, port):
        text = "LOAD DATA LOCAL INFILE 'x' INTO TABLE kept"
        assert isinstance(await client.verdict(text), RunVerdict)
        client.judge.local_data(b"one\n")
        client.judge.local_data(b"")
        await client.answer(client.wrote())
        plan = plan_of(port, 11)
        assert isinstance(plan, GroupPlan)
        (part,) = plan.binlogs["statements"]
        assert isinstance(part, TextPart)
        assert any(event.body.endswith(b"one\n") for event in part.events)


@in_a_loop
async def test_a_value_that_the_source_has_to_tell() -> None:
    async with session() as (client, _):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        await client.run("SET @a = 'row'", QUIET)
        client.client.values["(@a)"] = "row"
        verdict = await client.run("SET binlog_format = @a", QUIET)
        assert verdict == RunVerdict(text="SET binlog_format = ROW")
        several = ["SET binlog_format = @a", "SELECT 1"]
        with pytest.raises(StatementError, match="doesn't yet support"):
            await client.verdict(*several)
        several[0] = "SET binlog_format = 'MIXED'"
        verdict = await client.verdict(*several)
        assert isinstance(verdict, RunVerdict)
        assert verdict.text == "SET binlog_format = ROW\n;SELECT 1"
        await client.answer(QUIET, ROWS_REPLY)
        rows = result(["Variable_name", "Value"], ["binlog_format", "ROW"])
        shown = await client.judge.shown("SHOW VARIABLES LIKE 'binlog_format'", rows)
        assert shown.rows == [(b"binlog_format", b"MIXED")]


@in_a_loop
async def test_replies_to_several_statements_that_cannot_be_told_apart() -> None:
    async with session() as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        texts = ["EXECUTE IMMEDIATE 'DELETE FROM items'", INSERT.format(2)]
        if isinstance(await client.verdict(*texts), RunVerdict):
            await client.answer(client.wrote(), client.wrote(insert_id=2))
        assert client.judge.judge([ClientStatement(INSERT.format(3))]) is None
        await client.run(INSERT.format(3), client.wrote(insert_id=3))
        # They may have made temporary tables.
        assert isinstance(plan_of(port, 14), Unattributed)


@in_a_loop
async def test_what_is_not_understood_goes_as_rows_where_binlogs_take_them() -> None:
    async with session(replace(STATEMENTS, logging_mode=LoggingMode.MIXED)) as (client, port):
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        client.source.tables[TableName("d", "odd")] = "CREATE TABLE odd (this is none"
        assert isinstance(await client.run("INSERT INTO odd VALUES (1)"), RunVerdict)
        assert isinstance(plan_of(port, 12), Unattributed)
        # Its diagnostics are read before anything is asked.
        asked = len(client.client.statements)
        assert client.judge.judge([ClientStatement("SHOW WARNINGS")]) == AS_IT_IS
        await client.answer(ROWS_REPLY)
        assert len(client.client.statements) == asked
        await client.run(INSERT.format(3), client.wrote(insert_id=3))
        assert texts_in(plan_of(port, 13), "statements") == [INSERT.format(3)]


@in_a_loop
async def test_the_state_of_a_session_is_told_where_it_is_followed() -> None:
    async with session() as (client, port):
        judge = client.judge
        assert isinstance(judge, PortSession)
        state = await judge.state_now()
        assert state is not None
        assert state[1].database == "d"
        judge.stumbled()
        state = await judge.state_now()
        assert state is not None, "it has begun anew"
        await client.run("BEGIN", StatementReply(status=IN_TRANSACTION))
        judge.stumbled()
        assert await judge.state_now() is None
        assert judge.reading is None
        assert judge.reads_long_texts
        port.is_set_up = False
        await client.run("COMMIT", QUIET)
        assert await judge.state_now() is None


@in_a_loop
async def test_user_variables_are_asked_for_before_a_refusal() -> None:
    async with session() as (client, _):
        client.client.answers = lambda text: (
            result(["a", "b"], ["DELETE FROM items", "utf8mb4_general_ci"])
            if "@`a`" in text
            else None
        )
        await client.run(INSERT.format(1), client.wrote(insert_id=1))
        await client.run("SET @a = f()", QUIET)
        await client.run("PREPARE p FROM @a", QUIET)
        await client.run("EXECUTE p", client.wrote())
        assert client.sent[-1].startswith("EXECUTE p")

"""Sessions of clients, judged and followed beside a source that a fake stands for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

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
from binlane.statements.sql.servers import LoggingMode
from tests.fake_source import Conversation, FakeClient, FakePort, FakeSource, result

ITEMS: Final = "CREATE TABLE `items` (`id` int NOT NULL AUTO_INCREMENT, `v` varchar(80), PRIMARY KEY (`id`)) ENGINE=InnoDB"
KEPT: Final = "CREATE TABLE `kept` (`id` int NOT NULL, PRIMARY KEY (`id`)) ENGINE=MyISAM"
STATEMENTS: Final = Definition(
    name="statements", scope=Scope.everything(), logging_mode=LoggingMode.STATEMENT, log_id=1
)
ROWS: Final = replace(STATEMENTS, name="rows", logging_mode=LoggingMode.ROW, log_id=2)
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
    await judge.start(is_reset=False)
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
        await client.judge.start(is_reset=True)
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

"""Partitions in scope that get the rows of a table outside: what is asked for, and what it becomes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from binlane.binlogs.routing.arrival_groups import ArrivalGroups, ArrivedTable
from binlane.binlogs.routing.moves import partition_arrival
from binlane.binlogs.routing.routing_memory import Memory, TableBirth
from binlane.binlogs.routing.table_births import TableArrival, births_after
from binlane.log.codec.event import Event
from binlane.log.codec.mysql_transaction import MysqlGtidEvent
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.transaction import GtidEvent
from binlane.log.codec.types import EventType, GtidFlag
from binlane.names import TableName
from binlane.positions import AnyGtid, Gtid, MysqlGtid
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.logged_statements import logged_statement
from tests.groups import event
from tests.routed_files import definitions

OLD = TableName("crm", "old")
KNOWN = Memory(births=(TableBirth(name=OLD, gtid="0-1-2", since="0-1-1"),))
EXCHANGE = "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE crm.`old` WITHOUT VALIDATION"
OWN = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562"
SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def scope_of(clauses: str = "LOG(shop.p)") -> Scope:
    (definition,) = definitions(clauses)
    return definition.scope


def query(statement: str, database: str = "shop") -> QueryEvent:
    return QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=b"",
        database=database.encode(),
        query=statement.encode(),
    )


def arriving(body: QueryEvent, memory: Memory = KNOWN) -> TableArrival | None:
    facts = logged_statement(body).facts()
    return partition_arrival(body, facts, scope_of(), memory)


def test_the_stage_stands_in_the_place_of_the_table() -> None:
    found = arriving(query(EXCHANGE))
    assert found is not None
    assert found.query.query.decode() == (
        "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE `shop`.`binlane_coming_1` WITHOUT VALIDATION"
    )
    assert found.query.database == b"shop"
    assert [one.birth.name for one in found.tables] == [OLD]
    assert found.what == "a partition of `shop`.`p`"


def test_a_default_database_outside_goes() -> None:
    text = "ALTER TABLE shop.p EXCHANGE PARTITION p0 WITH TABLE old"
    found = arriving(query(text, "crm"))
    assert found is not None
    assert found.query.database == b"shop"
    assert b"old" not in found.query.query


def test_a_table_may_become_a_partition() -> None:
    text = "ALTER TABLE p CONVERT TABLE crm.old TO PARTITION p1 VALUES LESS THAN (5)"
    found = arriving(query(text))
    assert found is not None
    assert found.query.query.decode() == text.replace("crm.old", "`shop`.`binlane_coming_1`")


@pytest.mark.parametrize(
    ("statement", "memory"),
    [
        (EXCHANGE, Memory()),
        (EXCHANGE.replace("`old`", "other"), KNOWN),
        ("ALTER TABLE crm.old EXCHANGE PARTITION p0 WITH TABLE p", KNOWN),
    ],
)
def test_others_are_not_asked_for(statement: str, memory: Memory) -> None:
    assert arriving(query(statement), memory) is None


@pytest.mark.parametrize(
    ("statement", "is_known"),
    [
        (EXCHANGE, False),
        ("ALTER TABLE crm.old EXCHANGE PARTITION p0 WITH TABLE crm.x", False),
        ("ALTER TABLE p CONVERT TABLE crm.old TO PARTITION p1 VALUES LESS THAN (5)", False),
        ("ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE crm.x", True),
        ("ALTER TABLE crm.old ADD x INT", True),
    ],
)
def test_a_table_that_has_given_its_rows_away_is_remembered_no_more(
    statement: str, *, is_known: bool
) -> None:
    effects = logged_statement(query(statement)).effects()
    memory = births_after(KNOWN, effects, scope_of(), MysqlGtid(SERVER, 9), since=None)
    assert bool(memory.births) == is_known


def groups_of(gtid: Event, own: Iterator[AnyGtid]) -> tuple[list[str], list[AnyGtid | None]]:
    """Texts of the statements by which a partition comes in, and the GTIDs of their groups."""
    found = arriving(query(EXCHANGE))
    assert found is not None
    made = event(EventType.QUERY, query("CREATE TABLE `shop`.`binlane_filling_1` (id INT)"))
    (coming,) = found.tables
    groups = ArrivalGroups(found, gtid, 900, partial(next, own))
    before = list(groups.before([ArrivedTable(coming, (made,), ())]))
    everything = [*before, groups.statement(), *groups.behind()]
    assert [one.events[-1].header.server_id == 900 for one in before] == [True] * len(before)
    return [_text(one.events[-1]) for one in everything], [one.gtid for one in everything]


def test_the_statement_has_the_gtid_of_the_source_and_the_stage_goes() -> None:
    body = MysqlGtidEvent(
        flags=1,
        source_id=SERVER,
        sequence=70,
        last_committed=3,
        sequence_number=4,
        immediate_commit_timestamp=1,
        original_commit_timestamp=1,
        transaction_length=100,
        immediate_server_version=80000,
        original_server_version=80000,
    )
    own = (MysqlGtid(OWN, number) for number in count(1))
    texts, gtids = groups_of(event(EventType.GTID_LOG, body), own)
    assert texts == [
        "DROP TABLE IF EXISTS `shop`.`binlane_filling_1`, `shop`.`binlane_coming_1`",
        "CREATE TABLE `shop`.`binlane_filling_1` (id INT)",
        "RENAME TABLE `shop`.`binlane_filling_1` TO `shop`.`binlane_coming_1`",
        "ALTER TABLE p EXCHANGE PARTITION p0 WITH TABLE `shop`.`binlane_coming_1` WITHOUT VALIDATION",
        "DROP TABLE IF EXISTS `shop`.`binlane_coming_1`",
    ]
    numbers = [1, 2, 3, None, 4]
    assert gtids == [MysqlGtid(OWN, one) if one else MysqlGtid(SERVER, 70) for one in numbers]


def test_on_mariadb_it_has_a_gtid_of_another_domain() -> None:
    body = GtidEvent(sequence=70, domain_id=0, flags=GtidFlag.STANDALONE)
    own = (Gtid(620_000, 900, number) for number in count(5))
    texts, gtids = groups_of(event(EventType.GTID, body), own)
    assert "RENAME TABLE IF EXISTS `shop`.`binlane_filling_1`" in texts[2]
    assert list(map(str, gtids)) == [
        *("620000-900-5", "620000-900-6", "620000-900-7", "0-1-70", "620000-900-8")
    ]


def _text(one: Event) -> str:
    assert isinstance(one.body, QueryEvent)
    return one.body.query.decode()

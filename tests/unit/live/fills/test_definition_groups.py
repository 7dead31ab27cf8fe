"""The groups that make tables before their rows, and tell what is done behind them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from binlane.live.fills.definition_groups import (
    GroupMaker,
    database_texts,
    done_gtids,
    stated_table,
)
from binlane.log.codec.event import Event, decode_event
from binlane.log.codec.status_vars import decode_status_vars
from binlane.log.grouping.event_group import gtid_of
from binlane.log.grouping.placing import place_group
from binlane.positions import AnyGtid, Gtid, GtidPosition, GtidSet, MysqlGtid
from binlane.statements.scope.scope import Scope
from tests.groups import source_format

_UUID = "bbbbbbbb-0000-0000-0000-000000000002"


def _maker() -> GroupMaker:
    return GroupMaker(format=source_format().format, server_id=9, timestamp=1_700_000_000)


@pytest.mark.parametrize(
    "create, text",
    [
        ("CREATE DATABASE `a`", "CREATE DATABASE IF NOT EXISTS `a`"),
        (
            "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `a`",
            "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `a`",
        ),
        ("CREATE DATABASE IF NOT EXISTS `a`", "CREATE DATABASE IF NOT EXISTS `a`"),
    ],
)
def test_a_database_is_made_where_it_is_not(create: str, text: str) -> None:
    assert list(database_texts({"a": create})) == [text]


def test_a_table_is_without_keys_to_what_is_outside() -> None:
    scope = Scope(log_databases=frozenset({"shop"}))
    create = (
        "CREATE TABLE `bought` (`id` int NOT NULL, `who` int, `what` int COMMENT 'people',"
        " PRIMARY KEY (`id`), KEY `by_whom` (`who`), KEY `of_what` (`what`),"
        " CONSTRAINT `by_whom` FOREIGN KEY (`who`) REFERENCES `crm`.`people` (`id`),"
        " CONSTRAINT `of_what` FOREIGN KEY (`what`) REFERENCES `orders` (`id`)) ENGINE=InnoDB"
    )
    stated = stated_table(_maker().query(create, "shop"), scope)
    text = stated.query.query.decode()
    assert "crm" not in text
    assert "of_what" in text
    assert stated.left_keys == {"by_whom"}


@pytest.mark.parametrize("gtid", [Gtid(77, 9, 5), MysqlGtid(_UUID, 5)])
def test_the_groups_are_read_again(gtid: AnyGtid) -> None:
    maker = _maker()
    group = maker.statement(gtid, "CREATE TABLE t (a INT)", database="shop")
    if isinstance(gtid, Gtid):
        events = _read_again(maker, group.events)
        assert gtid_of(events[0]) == gtid
    assert group.gtid == gtid
    query = maker.query("CREATE TABLE t (a INT)", "shop")
    names = {each.name: each.value for each in decode_status_vars(query.status_vars)}
    assert names["SQL_MODE"] == 0
    assert names["FLAGS2"] == (1 << 26) | (1 << 27)


def _read_again(maker: GroupMaker, events: Sequence[Event]) -> list[Event]:
    """Place a group in a file, and decode its events."""
    data, position, found = place_group(events, 4, maker.format), 0, []
    while position < len(data):
        length = int.from_bytes(data[position + 9 : position + 13], "little")
        event = data[position : position + length]
        found.append(decode_event(event, maker.format, position=4 + position))
        position += length
    return found


def test_what_tells_that_a_place_is_done() -> None:
    place = GtidPosition.parse("0-1-5,3-2-9")
    assert done_gtids(place) == place.gtids
    assert done_gtids(GtidSet.parse(f"{_UUID}:1-9")) == ()
    group = _maker().nothing(place.gtids[1])
    assert group.events[0].header.server_id == 2

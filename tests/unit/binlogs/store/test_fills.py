"""What the store keeps of binlogs that are given their tables' rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlogs.store.fills import BLOCK, Fill, FillKind, SeedSource
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.stored_groups import StoreReader
from binlane.binlogs.store.verify import verify
from binlane.errors import DefinitionError
from binlane.names import TableName
from binlane.positions import Gtid, GtidPosition, MysqlGtid
from binlane.statements.scope.definition import Definition, check_name, is_internal
from binlane.statements.scope.scope import Scope
from binlane.statements.sql.servers import LoggingMode
from tests.groups import add, source_format, transaction

_SOURCE = SeedSource(name="77-9", server_id=9)
_PLACE = GtidPosition.parse("0-1-5")
_SCOPE = Scope(log_tables=frozenset({TableName("shop", "orders")}))


def _made(store: Store, name: str = "orders", *, fill: Fill | None = None) -> Definition:
    definition = Definition(
        name=name, scope=_SCOPE, logging_mode=LoggingMode.ROW, log_id=store.next_log_id()
    )
    store.create_binlog(
        definition,
        start=GtidPosition(),
        format_description=source_format(),
        server_id=1,
        timestamp=1_700_000_000,
        fill=fill,
    )
    return definition


def test_a_fill_lasts_until_it_is_finished(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        definition = _made(store, fill=Fill(log_id=0, kind=FillKind.CREATE))
        fill = store.seeds.fill_of(definition.log_id)
        assert fill is not None
        assert fill.holds_back
        assert fill.created > 0
    with Store.open(tmp_path) as store:
        assert store.seeds.fills == (fill,)
        store.seeds.gtid_domain_id = 77
        seeding = store.seeds.place(fill, _PLACE, "orders.000001")
        assert (seeding.first, seeding.last) == (1, None)
        assert seeding.source.key == "77"
    with Store.open(tmp_path) as store:
        binlog = store.binlogs["orders"]
        assert binlog.seedings == (seeding,)
        placing = store.seeds.fill_of(definition.log_id)
        assert placing is not None
        assert placing.place == _PLACE
        binlog.advance(Gtid(77, 9, 3))
        store.finish_fill(definition, replace(seeding, last=3))
        assert store.seeds.fills == ()
    with Store.open(tmp_path) as store:
        assert store.seeds.seedings == (replace(seeding, last=3),)
        assert [each.change for each in store.history()] == ["create", "rows"]
    assert not list(verify([tmp_path]))


def test_each_seeding_has_gtids_of_its_own(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        firsts = []
        for name in ("a", "b"):
            definition = _made(store, name, fill=Fill(log_id=0, kind=FillKind.CREATE))
            fill = store.seeds.fill_of(definition.log_id)
            assert fill is not None
            firsts.append(store.seeds.place(fill, _PLACE, f"{name}.000001").first)
        assert firsts == [1, 1 + BLOCK]
        store.drop_binlog("a")
        assert [each.first for each in store.seeds.seedings] == [1 + BLOCK]
        assert [each.log_id for each in store.seeds.fills] == [definition.log_id]


def test_a_place_is_taken_back(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        definition = _made(store)
        fill = Fill(log_id=definition.log_id, kind=FillKind.ADD, statement="ALTER …", created=7)
        store.seeds.begin(fill)
        assert not fill.holds_back
        store.seeds.place(fill, _PLACE, "orders.000001")
        store.seeds.unplace(definition.log_id)
        assert (store.seeds.fills, store.seeds.seedings) == ((fill,), ())
        store.seeds.cancel(definition.log_id)
        assert not store.seeds.fills


def test_each_try_of_an_arrival_has_gtids_of_its_own(tmp_path: Path) -> None:
    gtid = Gtid(0, 1, 6)
    with Store.open(tmp_path) as store:
        definition = _made(store)
        log_id = definition.log_id
        fill = Fill(log_id=log_id, kind=FillKind.ADD, statement="ALTER …", created=7)
        store.seeds.begin(fill)
        first = store.seeds.begin_arrival(log_id, gtid, _PLACE, "orders.000001")
        assert (first.place, first.is_arrival) == (GtidPosition((gtid,)), True)
        # A fill that reads on does not take it for its own.
        assert store.seeds.fills == (fill,)
        store.seeds.unplace(log_id)
        assert store.seeds.seedings == (first,)
        add(store.binlogs["orders"], [transaction(first.first + 2, domain_id=620_000)])
    with Store.open(tmp_path) as store:
        known = replace(first, last=first.first + 2)
        assert store.binlogs["orders"].seedings == (known,)
        second = store.seeds.begin_arrival(log_id, gtid, _PLACE, "orders.000001")
        assert second.first == first.first + BLOCK
        # Of a try that has left nothing nothing is kept.
        store.seeds.end_arrivals(log_id, store.binlogs["orders"].reached)
        assert store.seeds.seedings == (known,)


def test_a_source_that_has_the_domain_of_rows_has_none(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        done = GtidPosition.parse("0-1-5,620000-1-3")
        with pytest.raises(DefinitionError, match="the source uses GTIDs of domain 620000 itself"):
            store.seeds.begin_arrival(1, Gtid(0, 1, 6), done, "orders.000001")


def test_what_binlane_keeps_for_itself_is_not_shown(tmp_path: Path) -> None:
    name = Fill(log_id=3, kind=FillKind.CREATE).staging
    assert is_internal(name)
    with pytest.raises(DefinitionError, match="characters that are not allowed"):
        check_name(name)
    with Store.open(tmp_path) as store:
        _made(store)
        _made(store, name)
        assert [each.name for each in store.history()] == ["orders"]
    reader = StoreReader(tmp_path)
    assert reader.names() == ("orders",)
    assert not list(verify([tmp_path]))


def test_a_file_that_begins_with_rows_says_that_nothing_was_before(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        _made(store)
        binlog = store.binlogs["orders"]
        add(binlog, [transaction(number) for number in range(1, 4)])
        reached = binlog.reached
        binlog.rotate(1_700_000_000, begin=GtidPosition())
        assert binlog.position == reached
        binlog.sync(force=True)
    with Store.open(tmp_path) as store:
        binlog = store.binlogs["orders"]
        assert binlog.reached == reached
        assert [str(file.begin) for file in binlog.files()] == ["", ""]


def test_gtids_of_seeds() -> None:
    uuid = "bbbbbbbb-0000-0000-0000-000000000002"
    mysql = SeedSource(name=uuid, server_id=9)
    assert (mysql.flavor, mysql.key, mysql.gtid(4)) == ("mysql", uuid, MysqlGtid(uuid, 4))
    assert (_SOURCE.flavor, _SOURCE.key, _SOURCE.gtid(4)) == ("mariadb", "77", Gtid(77, 9, 4))

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from binlane.binlogs.store.chunks import open_chunks
from binlane.binlogs.store.files import IN_USE_POSITION
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from binlane.binlogs.store.verify import verify
from binlane.errors import DefinitionError
from binlane.log.codec.control import FormatDescriptionEvent, RotateEvent
from binlane.log.codec.transaction import GtidListEvent
from binlane.log.codec.types import EventType, HeaderFlag
from binlane.log.grouping.walk import walk
from binlane.names import TableName
from binlane.positions import FilePosition, Gtid, GtidPosition
from binlane.statements.scope.scope import Scope
from tests.fixture_sets import fixture_set
from tests.groups import (
    TIMESTAMP,
    add,
    create,
    definition,
    incident,
    kill,
    real_groups,
    sequences,
    source_format,
    stored,
    transaction,
)

SMALL = StoreSettings(max_binlog_size_bytes=4096, watermark_interval_s=3600)


def test_a_new_binlog_begins_with_magic_format_and_gtid_list(tmp_path: Path) -> None:
    start = GtidPosition.parse("0-1-7,3-1-2")
    with Store.open(tmp_path) as store:
        binlog = create(store, start=start)
        (file,) = binlog.files()
        assert binlog.position == binlog.published.begin == file.begin == start
        assert binlog.end == FilePosition("orders.000001", file.size_bytes)
        description, gtid_list = walk(open_chunks(file.path), file=file.name)
        assert description.header.flags == HeaderFlag.BINLOG_IN_USE
        assert isinstance(description.body, FormatDescriptionEvent)
        assert description.body.format.checksum_length == 4
        assert isinstance(gtid_list.body, GtidListEvent)
        assert gtid_list.body.position == start
    assert file.path == tmp_path / "binlogs/orders/orders.000001"
    assert file.path.with_name("orders.index").read_bytes() == b"./orders.000001\n"


@pytest.mark.parametrize("fixture", ["md1011_txn", "md1011_ddl", "md118_txn", "md1011_gtid"])
def test_groups_of_real_servers_are_kept_but_for_their_positions(
    tmp_path: Path, fixture: str
) -> None:
    groups = [group for group in real_groups(fixture) if group.gtid]
    with Store.open(tmp_path) as store:
        add(binlog := create(store), groups)
        kept = stored(binlog)
    assert [group.gtid for group in kept] == [group.gtid for group in groups]
    for mine, theirs in zip(kept, groups, strict=True):
        assert [event.body for event in mine.events] == [event.body for event in theirs.events]
        assert [replace(e.header, next_position=0, length=0) for e in mine.events] == [
            replace(e.header, next_position=0, length=0) for e in theirs.events
        ]
        assert all(e.header.next_position == e.next_position for e in mine.events)
    assert not list(verify([tmp_path]))


def test_nothing_is_published_before_sync(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store)
        before = binlog.published
        binlog.append(transaction(1))
        assert binlog.published == before
        binlog.sync()
        assert binlog.position == GtidPosition.parse("0-1-1")
        assert binlog.end.position == binlog.files()[0].path.stat().st_size > before.end.position


def test_a_group_is_written_once_however_often_it_comes(tmp_path: Path) -> None:
    groups = [transaction(n) for n in range(1, 4)]
    with Store.open(tmp_path) as store:
        add(binlog := create(store), [*groups, *groups, groups[1]])
        assert sequences(stored(binlog)) == [1, 2, 3]
    with Store.open(tmp_path) as store:
        add(binlog := store.binlogs["orders"], [*groups, transaction(4)])
        assert sequences(stored(binlog)) == [1, 2, 3, 4]


def test_what_lies_before_the_start_is_not_written(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store, start=GtidPosition.parse("0-1-2"))
        add(binlog, [transaction(n) for n in range(1, 4)])
        assert sequences(stored(binlog)) == [3]


def test_domains_are_told_apart(tmp_path: Path) -> None:
    groups = [transaction(5), transaction(3, domain_id=2), transaction(6)]
    with Store.open(tmp_path) as store:
        add(binlog := create(store), groups)
        assert binlog.position == GtidPosition.parse("0-1-6,2-1-3")
        assert len(stored(binlog)) == 3


def test_an_incident_without_gtid_is_kept_over_a_restart(tmp_path: Path) -> None:
    store = Store.open(tmp_path, SMALL)
    add(binlog := create(store), [transaction(1), incident()])
    end = binlog.end
    kill(store)
    with Store.open(tmp_path) as store:
        assert store.binlogs["orders"].end == end
        assert store.binlogs["orders"].position == GtidPosition.parse("0-1-1")


def test_the_watermark_moves_where_nothing_is_in_scope(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store)
        end = binlog.end
        binlog.advance(Gtid(0, 1, 9))
        binlog.sync()
        assert (binlog.end, binlog.position) == (end, GtidPosition.parse("0-1-9"))
    with Store.open(tmp_path) as store:
        assert store.binlogs["orders"].position == GtidPosition.parse("0-1-9")


def test_a_full_file_is_followed_by_another(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        add(binlog := create(store), [transaction(n, size=900) for n in range(1, 21)])
        files = binlog.files()
        assert len(files) > 2
        assert sequences(stored(binlog)) == list(range(1, 21))
        for file, following in pairwise(files):
            *_, last = walk(open_chunks(file.path), file=file.name)
            assert isinstance(last.body, RotateEvent)
            assert (last.body.file, last.body.position) == (following.name, 4)
            assert file.path.stat().st_size == file.size_bytes >= 4096
            assert following.begin.includes(file.begin)
        index = files[0].path.with_name("orders.index").read_text()
        assert index == "".join(f"./{file.name}\n" for file in files)
    assert not list(verify([tmp_path]))
    for file in files:
        assert file.path.read_bytes()[IN_USE_POSITION] == 0


def test_a_group_larger_than_a_file_stays_in_one(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        add(binlog := create(store), [transaction(n, size=20_000) for n in range(1, 4)])
        assert [sequences(stored([file.path])) for file in binlog.files()] == [[1], [2], [3]]


def test_more_than_fits_in_memory_goes_to_disk_before_sync_but_is_not_published(
    tmp_path: Path,
) -> None:
    with Store.open(tmp_path) as store:
        binlog = create(store)
        end = binlog.end
        binlog.append(transaction(1, size=5 << 20))
        assert binlog.files()[0].path.stat().st_size > 5 << 20
        assert binlog.end == end
        binlog.sync()
        assert sequences(stored(binlog)) == [1]


def test_a_binlog_goes_on_in_its_file_after_a_restart(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        add(create(store), [transaction(1)])
    with Store.open(tmp_path) as store:
        binlog = store.binlogs["orders"]
        assert binlog.files()[0].path.read_bytes()[IN_USE_POSITION] == 1
        add(binlog, [transaction(2)])
        assert len(binlog.files()) == 1
        assert sequences(stored(binlog)) == [1, 2]
    assert binlog.files()[0].path.read_bytes()[IN_USE_POSITION] == 0


def test_another_format_of_the_source_begins_a_new_file(tmp_path: Path) -> None:
    newer = replace(source_format(), server_version_field=b"11.8.9-MariaDB-log".ljust(50, b"\0"))
    with Store.open(tmp_path) as store:
        add(binlog := create(store), [transaction(1)])
        binlog.set_format(source_format(), timestamp=TIMESTAMP)
        assert len(binlog.files()) == 1
        binlog.set_format(newer, timestamp=TIMESTAMP)
        binlog.set_format(newer, timestamp=TIMESTAMP)
        assert len(binlog.files()) == 2
        first = next(walk(open_chunks(binlog.files()[1].path), file="")).body
        assert isinstance(first, FormatDescriptionEvent)
        assert first.server_version == "11.8.9-MariaDB-log"


def test_a_restart_of_the_source_is_told_once(tmp_path: Path) -> None:
    restarted = replace(source_format(), created=TIMESTAMP)
    with Store.open(tmp_path, SMALL) as store:
        add(binlog := create(store), [transaction(1)])
        for _ in range(2):
            binlog.set_format(restarted, timestamp=TIMESTAMP)
        binlog.rotate(TIMESTAMP)
        binlog.set_format(restarted, timestamp=TIMESTAMP)
        events = [next(walk(open_chunks(f.path), file=f.name)) for f in binlog.files()]
        created = [e.body.created for e in events if isinstance(e.body, FormatDescriptionEvent)]
    assert created == [0, TIMESTAMP, 0]


def test_purging_removes_the_files_before_one(tmp_path: Path) -> None:
    with Store.open(tmp_path, SMALL) as store:
        add(binlog := create(store), [transaction(n, size=1500) for n in range(1, 13)])
        *_, kept, last = before = binlog.files()
        binlog.purge(kept.name)
        assert binlog.files() == (kept, last)
        assert binlog.published.begin == kept.begin != before[0].begin
    assert sorted(path.name for path in kept.path.parent.iterdir()) == [
        kept.name,
        last.name,
        "orders.index",
    ]
    assert not list(verify([tmp_path]))


def test_definitions_survive_a_restart(tmp_path: Path) -> None:
    scope = Scope(
        log_databases=frozenset({"shop"}),
        log_tables=frozenset({TableName("a.b", "`c`")}),
        ignore_databases=frozenset({"x"}),
        ignore_tables=frozenset({TableName("shop", "secret")}),
    )
    wanted = definition("shop", 1, scope)
    with Store.open(tmp_path) as store:
        store.create_binlog(
            wanted,
            start=GtidPosition(),
            format_description=source_format(),
            server_id=1,
            timestamp=TIMESTAMP,
        )
        create(store, "all")
    with Store.open(tmp_path) as store:
        assert list(store.binlogs) == ["all", "shop"]
        assert store.binlogs["shop"].definition == wanted
        altered = replace(wanted, scope=Scope.everything())
        store.alter_binlog(altered)
    with Store.open(tmp_path) as store:
        assert store.binlogs["shop"].definition == altered


def test_log_ids_are_never_used_again(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        create(store, "a")
        create(store, "b")
        store.drop_binlog("b")
        assert store.next_log_id() == 3


def test_a_dropped_binlog_leaves_nothing_and_its_name_is_free(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        add(create(store), [transaction(1)])
        store.drop_binlog("orders")
        assert not store.binlogs
        assert list((tmp_path / "binlogs").iterdir()) == []
        assert create(store).position == GtidPosition()


def test_wrong_names_are_refused(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        create(store)
        with pytest.raises(DefinitionError, match="binlog 'orders' exists already"):
            create(store)
        with pytest.raises(DefinitionError, match="unknown binlog 'x'; the binlogs are 'orders'"):
            store.drop_binlog("x")


def test_files_are_as_large_as_real_ones(tmp_path: Path) -> None:
    """The same events take the same bytes as in the server's own file, but for its checkpoint."""
    name, data = fixture_set("md1011_txn").binlogs[0]
    overhead = sum(
        event.header.length
        for event in walk([data], file=name)
        if event.header.type_code in {EventType.BINLOG_CHECKPOINT, EventType.ROTATE, EventType.STOP}
    )
    with Store.open(tmp_path) as store:
        add(binlog := create(store), real_groups("md1011_txn"))
        assert binlog.end.position == len(data) - overhead

"""The change data feed of current tables in Delta: read by delta-rs, version by version."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binlane.errors import StoreError
from binlane.tables.columnar.unify import conform_table
from binlane.tables.landing.range_work import FormatName, Mode
from binlane.tables.landing.tables import planning
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import TableStore
from tests.feeds import check_replay, feed_of, is_change
from tests.runs import TABLE, Image, images, merge, run_of, schema_of, staged

ROWS = schema_of(tenant=pa.string(), id=pa.int32(), value=pa.string())
KEY = ["tenant", "id"]


def opened(into: Path, *, feed: bool | None = True, soft_deletes: bool = False) -> TableStore:
    """The current tables, as a new process opens them."""
    (into / "_binlane").mkdir(exist_ok=True)
    keeping = TableStoreSettings(run_id="run", feed=feed, soft_deletes=soft_deletes)
    return open_store(str(into), Mode.CURRENT, FormatName.DELTA, "app", keeping)


def logged(
    model: dict[tuple[str, int], str], changes: Sequence[tuple[str, int]], seq: int
) -> list[Image]:
    """Changes of a model as the images that a server logs of them; the model is changed."""
    found: list[Image] = []
    for what, number in changes:
        key = ("tenant" if number % 3 else "other", number)
        new = f"v{seq + len(found)}"
        if what == "drop" and key in model:
            found.append(("delete", (*key, model.pop(key))))
        elif what == "put":
            if key in model:
                found += [("update_before", (*key, model[key])), ("update_after", (*key, new))]
            else:
                found.append(("insert", (*key, new)))
            model[key] = new
    return found


CHANGES = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["put", "put", "drop"]), st.integers(0, 40)),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=5,
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    batches=CHANGES,
    cuts=st.lists(st.integers(0, 20), max_size=2),
    has_key=st.booleans(),
    soft_deletes=st.booleans(),
    is_seeded=st.booleans(),
    since=st.integers(0, 2),
)
def test_a_feed_makes_each_version_of_the_one_before(
    batches: list[list[tuple[str, int]]],
    cuts: list[int],
    *,
    has_key: bool,
    soft_deletes: bool,
    is_seeded: bool,
    since: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Several runs a batch, tiny files that overlap, and a feed that may come later."""
    into = tmp_path_factory.mktemp("feed")
    key = KEY if has_key else []
    model: dict[tuple[str, int], str] = {}
    seq, began = 1, 0
    uri = opened(into).uri(TABLE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "TARGET_BYTES_MIN", 400)
        if has_key and is_seeded:
            found = logged(model, [("put", number) for number in range(0, 40, 2)], seq)
            whole = opened(into).whole(ROWS)
            rows = images(ROWS, found, seq)
            halves = [rows.take(list(range(half, len(found), 2))) for half in (0, 1)]
            files = [run_of(into, each, key) for each in halves]
            store = opened(into, feed=True if since == 0 else None, soft_deletes=soft_deletes)
            own = [conform_table(pa.table(pq.read_table(each.path)), whole) for each in files]
            seq += len(found)
            store.seed(TABLE, [staged(into, each, key) for each in own], key, ROWS, seq - 1)
        for number, batch in enumerate(batches):
            found = logged(model, batch, seq)
            if not found:
                continue
            rows = images(ROWS, found, seq)
            seq += len(found)
            edges = sorted({0, len(found), *(min(cut, len(found)) for cut in cuts)})
            parts = [rows.slice(i, j - i) for i, j in pairwise(edges)]
            feed = True if number >= since else None
            store = opened(into, feed=feed, soft_deletes=soft_deletes and has_key)
            if number == since and store.exists(TABLE):
                began = DeltaTable(uri).version()
            merge(store, [run_of(into, part, key) for part in parts], key, seq - 1)
            if number == 3:
                store.truncate(TABLE)
                model.clear()
    if began or (since == 0 and seq > 1):
        check_replay(uri, key, began)


def test_files_that_are_joined_and_removed_tell_of_no_rows(tmp_path: Path) -> None:
    store = opened(tmp_path)
    uri = store.uri(TABLE)
    schema = schema_of(id=pa.int64(), value=pa.string())
    for seq in range(1, 40):
        changes = [("insert", (seq, "x"))]
        if seq % 4 == 0:
            changes += [("update_after", (seq // 2, f"v{seq}")), ("delete", (seq // 3, "x"))]
        rows = images(schema, changes, 3 * seq)
        merge(store, [run_of(tmp_path, rows, ["id"])], ["id"], 3 * seq + 2)
    found = DeltaTable(uri).version()
    assert store.compact(TABLE) > 0
    assert DeltaTable(uri).version() == found + 1
    assert not is_change(uri, found + 1)
    assert feed_of(uri, found + 1) == {}
    store.vacuum(TABLE, 1)
    check_replay(uri, ["id"])
    history = DeltaTable(uri).history(1)[0]
    assert history["operationParameters"]["binlane"] == "compact"
    assert list((Path(uri) / "_change_data").iterdir())
    store.vacuum(TABLE, 0)
    assert not list((Path(uri) / "_change_data").iterdir())


def wider(rows: pa.Table) -> pa.Table:
    return rows.append_column("note", pa.array(["none"] * rows.num_rows, pa.string()))


def test_a_feed_goes_on_over_other_columns(tmp_path: Path) -> None:
    store = opened(tmp_path)
    uri = store.uri(TABLE)
    rows = images(ROWS, [("insert", ("a", n, "x")) for n in range(5)], 1)
    merge(store, [run_of(tmp_path, rows, KEY)], KEY, 5)
    store.conform(TABLE, ROWS.append(pa.field("at", pa.timestamp("us"))))
    assert store.rewrite(TABLE, wider, 6) == ""
    own = ROWS.append(pa.field("at", pa.timestamp("us"))).append(pa.field("note", pa.string()))
    changed = images(
        own,
        [("update_after", ("a", 2, "y", None, "n")), ("delete", ("a", 3, "x", None, "none"))],
        7,
    )
    merge(store, [run_of(tmp_path, changed, KEY)], KEY, 8)
    last = DeltaTable(uri).version()
    told = feed_of(uri, last)
    assert {kind: len(rows) for kind, rows in told.items()} == {
        "update_preimage": 1,
        "update_postimage": 1,
        "delete": 1,
    }
    protocol = DeltaTable(uri).protocol()
    assert "changeDataFeed" in (protocol.writer_features or ())
    assert protocol.reader_features == ["timestampNtz"]
    every = pa.table(DeltaTable(uri).load_cdf(starting_version=0).read_all())
    assert "note" in every.column_names
    assert every.num_rows


def one_row(store: TableStore, folder: Path, op: str, value: str, seq: int) -> None:
    rows = images(ROWS, [(op, ("a", 1, value))], seq)
    merge(store, [run_of(folder, rows, KEY)], KEY, seq)


def test_a_commit_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    store = opened(tmp_path)
    one_row(store, tmp_path, "insert", "x", 1)
    DeltaTable(store.uri(TABLE)).alter.set_table_properties({"delta.checkpointInterval": "7"})
    with pytest.raises(StoreError, match=r"somebody else wrote 0+2\.json"):
        one_row(store, tmp_path, "update_after", "y", 2)
    assert DeltaTable(store.uri(TABLE)).version() == 2
    one_row(opened(tmp_path, feed=None), tmp_path, "update_after", "y", 2)
    assert "update_preimage" in feed_of(store.uri(TABLE), 3)


def test_a_protocol_that_asks_for_more_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path)
    one_row(store, tmp_path, "insert", "x", 1)
    DeltaTable(store.uri(TABLE)).alter.add_feature(
        [TableFeatures.ChangeDataFeed, TableFeatures.RowTracking],
        allow_protocol_versions_increase=True,
    )
    with pytest.raises(StoreError, match=r"asks writers for .*rowTracking"):
        one_row(opened(tmp_path), tmp_path, "update_after", "y", 2)


def test_a_feed_may_come_later_and_go(tmp_path: Path) -> None:
    schema = schema_of(id=pa.int32(), at=pa.timestamp("us"))
    for number, feed in enumerate((None, True, None, False)):
        rows = images(schema, [("insert" if not number else "update_after", (1, None))], number + 1)
        merge(opened(tmp_path, feed=feed), [run_of(tmp_path, rows, ["id"])], ["id"], number + 1)
    uri = opened(tmp_path, feed=None).uri(TABLE)
    # Made, inserted, switched on, updated, updated, switched off, updated.
    table = DeltaTable(uri)
    assert table.version() == 6
    assert [bool(feed_of(uri, version)) for version in (2, 3, 4)] == [False, True, True]
    assert table.metadata().configuration["delta.enableChangeDataFeed"] == "false"
    protocol = table.protocol()
    assert protocol.reader_features == ["timestampNtz"]
    assert sorted(protocol.writer_features or ()) == ["changeDataFeed", "timestampNtz"]

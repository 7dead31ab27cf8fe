"""One behaviour suite for the tables of every format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from binlane.errors import StoreError
from binlane.names import TableName
from binlane.tables.columnar.unify import conform_table
from binlane.tables.landing.range_work import DataFile, FormatName, Mode
from binlane.tables.landing.table_files import write_file
from binlane.tables.landing.tables import planning
from binlane.tables.landing.tables.merging import merge_file
from binlane.tables.landing.tables.opening import open_store
from binlane.tables.landing.tables.plain import PlainFormat
from binlane.tables.landing.tables.row_versions import first_versions
from binlane.tables.landing.tables.store_settings import TableStoreSettings
from binlane.tables.landing.tables.table_store import TableStore
from binlane.tables.landing.target_files import file_name
from tests.landed import plain_rows
from tests.runs import TABLE, Image, images, merge, moment, run_of, schema_of, staged, versions_of

FORMATS = list(FormatName)
ORDERS = schema_of(id=pa.int64(), state=pa.string())
OF_ALL_FORMATS = pytest.mark.parametrize("table_format", FORMATS, ids=lambda each: each.value)


def opened(
    into: Path, table_format: FormatName, mode: Mode = Mode.CURRENT, *, soft_deletes: bool = False
) -> TableStore:
    """A store as a new process opens it."""
    keeping = TableStoreSettings(run_id="run", soft_deletes=soft_deletes)
    return open_store(str(into), mode, table_format, "app", keeping)


def rows_of(
    into: Path, table_format: FormatName, mode: Mode = Mode.CURRENT
) -> list[tuple[Any, ...]]:
    """What a reader of the table sees of the source's columns, sorted."""
    table = plain_rows(into, table_format, mode, TABLE)
    own = [name for name in table.column_names if not name.startswith("_")]
    return sorted((tuple(row.values()) for row in table.select(own).to_pylist()), key=repr)


def inserts(rows: Sequence[tuple[Any, ...]]) -> list[Image]:
    return [("insert", row) for row in rows]


@OF_ALL_FORMATS
def test_rows_come_change_and_go_by_key(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format)
    first = images(ORDERS, inserts([(1, "a"), (2, "b"), (3, None)]), 1)
    merge(store, [run_of(tmp_path, first, ["id"])], ["id"], 3)
    second = images(
        ORDERS,
        [
            ("update_before", (1, "a")),
            ("update_after", (1, "paid")),
            ("delete", (2, "b")),
            ("update_before", (3, None)),
            ("update_after", (7, None)),
        ],
        4,
    )
    merge(store, [run_of(tmp_path, second, ["id"])], ["id"], 8)
    assert rows_of(tmp_path, table_format) == [(1, "paid"), (7, None)]
    again = opened(tmp_path, table_format)
    assert again.applied(TABLE) == 8
    assert again.names() == [TABLE]
    assert again.schema(TABLE).names == ["id", "state", "_gtid", "_seq"]
    assert again.read(TABLE).sort_by("id").column("_seq").to_pylist() == [5, 8]


@OF_ALL_FORMATS
def test_the_last_of_several_runs_counts(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format)
    merge(store, [run_of(tmp_path, images(ORDERS, inserts([(1, "x")]), 1), ["id"])], ["id"], 1)
    runs = [
        run_of(tmp_path, images(ORDERS, changes, seq), ["id"])
        for changes, seq in (
            ([("delete", (1, "x")), ("insert", (2, "a"))], 2),
            ([("insert", (1, "y")), ("update_after", (2, "b")), ("insert", (9, "z"))], 4),
            ([("delete", (2, "b"))], 7),
        )
    ]
    merge(store, runs, ["id"], 7)
    assert rows_of(tmp_path, table_format) == [(1, "y"), (9, "z")]


LOCAL = datetime(2024, 1, 1, 1, 1, 1, 7, tzinfo=UTC).replace(tzinfo=None)
KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [-128, -1, 0, 127]),
    "bigint": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "unsigned": (pa.decimal128(20, 0), [Decimal(0), Decimal(2**63), Decimal(2**64 - 1)]),
    "decimal": (pa.decimal128(10, 3), [Decimal("-1.5"), Decimal("0.001"), Decimal("7.250")]),
    "text": (pa.string(), ["", "a", "A", "ä", "a" * 200, "a" * 199 + "b", "\U0001f600", 'q"\\']),
    "bytes": (pa.binary(), [b"", b"\x00", b"\xff\x00", b"a", b"b" * 300]),
    "date": (pa.date32(), [None, date(1000, 1, 1), date(9999, 12, 31)]),
    "datetime": (
        pa.timestamp("us"),
        [None, LOCAL.replace(year=1000), LOCAL],
    ),
    "timestamp": (
        pa.timestamp("us", tz="UTC"),
        [None, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)],
    ),
    "double": (pa.float64(), [-1.5, 0.0, 1e300]),
}


@OF_ALL_FORMATS
@pytest.mark.parametrize("name", KEYS)
def test_keys_of_every_type(name: str, table_format: FormatName, tmp_path: Path) -> None:
    data_type, values = KEYS[name]
    schema = schema_of(k=data_type, v=pa.string())
    for number, value in enumerate(values):  # each time opened anew: bounds come from the log
        store = opened(tmp_path, table_format)
        run = run_of(tmp_path, images(schema, inserts([(value, "new")]), number + 1), ["k"])
        merge(store, [run], ["k"], number + 1)
    store = opened(tmp_path, table_format)
    changes = [("update_after", (value, "paid")) for value in values[1:]]
    run = run_of(tmp_path, images(schema, [("delete", (values[0], "new")), *changes], 100), ["k"])
    merge(store, [run], ["k"], 200)
    expected = sorted(((value, "paid") for value in values[1:]), key=repr)
    assert rows_of(tmp_path, table_format) == expected


@OF_ALL_FORMATS
def test_rows_without_a_key_are_counted(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format)
    first = images(ORDERS, inserts([(1, "a"), (1, "a"), (1, None), (2, "b")]), 1)
    assert merge(store, [run_of(tmp_path, first, [])], [], 4) == 0
    second = images(
        ORDERS,
        [("delete", (1, "a")), ("delete", (1, None)), ("insert", (3, "c")), ("delete", (8, "?"))],
        5,
    )
    assert merge(store, [run_of(tmp_path, second, [])], [], 8) == 1
    assert rows_of(tmp_path, table_format) == [(1, "a"), (2, "b"), (3, "c")]


@OF_ALL_FORMATS
def test_deleted_rows_may_stay(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format, soft_deletes=True)
    first = images(ORDERS, inserts([(1, "a"), (2, "b"), (3, "c")]), 1)
    merge(store, [run_of(tmp_path, first, ["id"])], ["id"], 3)
    second = images(ORDERS, [("delete", (1, "a")), ("delete", (2, "b")), ("insert", (2, "n"))], 4)
    merge(store, [run_of(tmp_path, second, ["id"])], ["id"], 6)
    rows = plain_rows(tmp_path, table_format, Mode.CURRENT, TABLE).sort_by("id").to_pylist()
    assert [(row["id"], row["state"], row["_deleted_at"]) for row in rows] == [
        (1, "a", moment(4)),
        (2, "n", None),
        (3, "c", None),
    ]


@OF_ALL_FORMATS
def test_history_keeps_every_version(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format, Mode.HISTORY)
    first = [
        ("insert", (1, "a")),
        ("update_before", (1, "a")),
        ("update_after", (1, "b")),
        ("insert", (2, "x")),
        ("delete", (2, "x")),
        ("insert", (3, "y")),
    ]
    merge(store, [versions_of(tmp_path, images(ORDERS, first, 1), ["id"])], ["id"], 6)
    second = [
        ("update_before", (1, "b")),
        ("update_after", (5, "b")),  # another key
        ("insert", (2, "again")),
        ("delete", (3, "y")),
    ]
    merge(store, [versions_of(tmp_path, images(ORDERS, second, 7), ["id"])], ["id"], 10)
    store.end_versions(TABLE, pa.scalar(moment(20), pa.timestamp("us", tz="UTC")))
    third = images(ORDERS, [("insert", (2, "anew"))], 21)
    merge(store, [versions_of(tmp_path, third, ["id"])], ["id"], 21)
    rows = plain_rows(tmp_path, table_format, Mode.HISTORY, TABLE)
    found = sorted(
        (row["id"], row["state"], row["valid_from"], row["valid_to"], row["is_current"])
        for row in rows.to_pylist()
    )
    assert found == [
        (1, "a", moment(1), moment(2), False),
        (1, "b", moment(3), moment(7), False),
        (2, "again", moment(9), moment(20), False),
        (2, "anew", moment(21), None, True),
        (2, "x", moment(4), moment(5), False),
        (3, "y", moment(6), moment(10), False),
        (5, "b", moment(8), moment(20), False),
    ]


@OF_ALL_FORMATS
@pytest.mark.parametrize("mode", [Mode.CURRENT, Mode.HISTORY])
def test_a_table_is_seeded_and_gone_on_with(
    mode: Mode, table_format: FormatName, tmp_path: Path
) -> None:
    """The files of a snapshot become the table's, moved as they are where they fit."""
    store = opened(tmp_path, table_format, mode)
    stage = run_of if mode is Mode.CURRENT else versions_of
    before = images(ORDERS, inserts([(1, "stale"), (5, "stale")]), 1)
    merge(store, [stage(tmp_path, before, ["id"])], ["id"], 2)
    columns = ["id", "state", "_gtid", "_seq", *(["_ts"] if mode is Mode.HISTORY else [])]
    rows = images(ORDERS, inserts([(1, "a"), (2, "b")]), 10).select(columns)
    change = first_versions if mode is Mode.HISTORY else None
    if change:
        store.end_versions(TABLE, pa.scalar(moment(9), pa.timestamp("us", tz="UTC")))
    store.seed(TABLE, [staged(tmp_path, rows, ["id"])], ["id"], ORDERS, 11, change)
    merge(store, [stage(tmp_path, images(ORDERS, [("delete", (1, "a"))], 20), ["id"])], ["id"], 20)
    seen = plain_rows(tmp_path, table_format, mode, TABLE).to_pylist()
    if mode is Mode.CURRENT:
        assert [(row["id"], row["state"]) for row in seen] == [(2, "b")]
    else:
        assert sorted((row["id"], row["state"], row["valid_to"]) for row in seen) == [
            (1, "a", moment(20)),
            (1, "stale", moment(9)),
            (2, "b", None),
            (5, "stale", moment(9)),
        ]
    assert opened(tmp_path, table_format, mode).applied(TABLE) == 20


@OF_ALL_FORMATS
def test_a_merge_reads_and_writes_the_files_it_touches(
    table_format: FormatName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "TARGET_BYTES_MIN", 2000)
    store = opened(tmp_path, table_format)
    rows = [(number, f"state {number * 7919 % 1000}") for number in range(5000)]
    merge(store, [run_of(tmp_path, images(ORDERS, inserts(rows), 1), ["id"])], ["id"], 5000)
    snapshot = store.snapshot(TABLE)
    assert snapshot is not None
    assert len(snapshot.files) > 4
    change = images(ORDERS, [("update_after", (2500, "new")), ("delete", (2501, "?"))], 6000)
    run = run_of(tmp_path, change, ["id"])
    works = opened(tmp_path, table_format).plan_merge(TABLE, [run], ["id"], ORDERS)
    assert [len(work.base) for work in works] == [1]
    appended = images(ORDERS, inserts([(5001, "new"), (5002, "new")]), 6002)
    works = store.plan_merge(TABLE, [run_of(tmp_path, appended, ["id"])], ["id"], ORDERS)
    assert [work.base for work in works] == [()]
    gone = run_of(tmp_path, images(ORDERS, [("delete", (77, "?"))], 6010), ["id"])
    results = [merge_file(work) for work in store.plan_merge(TABLE, [gone], ["id"], ORDERS)]
    assert [len(result.remove) for result in results] == [1]


@OF_ALL_FORMATS
def test_columns_change_in_all_rows(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format)
    merge(
        store,
        [run_of(tmp_path, images(ORDERS, inserts([(1, "10"), (2, "20")]), 1), ["id"])],
        ["id"],
        2,
    )
    reordered = schema_of(state=pa.string(), id=pa.int64())
    assert not store.conform(TABLE, reordered)
    assert opened(tmp_path, table_format).schema(TABLE).names == ["state", "id", "_gtid", "_seq"]
    times = schema_of(state=pa.string(), id=pa.timestamp("us"))
    assert "the log does not tell how" in store.conform(TABLE, times)
    numbers = schema_of(state=pa.string(), id=pa.int32())
    assert not store.conform(TABLE, numbers.append(pa.field("note", pa.string())))
    assert rows_of(tmp_path, table_format) == [("10", 1, None), ("20", 2, None)]
    assert opened(tmp_path, table_format).applied(TABLE) == 2
    too_small = partial(conform_table, schema=pa.schema([pa.field("state", pa.decimal128(1, 0))]))
    assert store.rewrite(TABLE, too_small)
    assert rows_of(tmp_path, table_format) == [("10", 1, None), ("20", 2, None)]


@OF_ALL_FORMATS
def test_change_tables_take_values_of_types_that_no_type_holds(
    table_format: FormatName, tmp_path: Path
) -> None:
    store = opened(tmp_path, table_format, Mode.CHANGES)
    values: list[tuple[pa.DataType, Any]] = [
        (pa.int32(), 7),
        (pa.timestamp("us"), LOCAL),
        (pa.binary(), b"\xff"),
        (pa.float32(), 1.5),
        (pa.date32(), date(2024, 1, 2)),
    ]
    for seq, (data_type, value) in enumerate(values, 1):
        rows = images(schema_of(v=data_type), [("insert", (value,))], seq)
        store.append(TABLE, [changes_file(store, table_format, rows)], seq)
    rows = plain_rows(tmp_path, table_format, Mode.CHANGES, TABLE).sort_by("_seq")
    texts = [b"7", b"2024-01-01 01:01:01.000007", b"\xff", b"1.5", b"2024-01-02"]
    assert rows.column("v").to_pylist() == texts


@OF_ALL_FORMATS
def test_columns_of_change_tables_are_spelled_as_they_were_first(
    table_format: FormatName, tmp_path: Path
) -> None:
    store = opened(tmp_path, table_format, Mode.CHANGES)
    for seq, name in enumerate(["state", "STATE", "State"], 1):
        rows = images(schema_of(**{name: pa.string()}), [("insert", (name,))], seq)
        store.append(TABLE, [changes_file(store, table_format, rows)], seq)
    rows = plain_rows(tmp_path, table_format, Mode.CHANGES, TABLE).sort_by("_seq")
    assert rows.column_names.count("state") == 1
    assert rows.column("state").to_pylist() == ["state", "STATE", "State"]


@OF_ALL_FORMATS
def test_change_tables_take_files_of_every_shape(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format, Mode.CHANGES)
    narrow = pa.schema([pa.field("id", pa.int32())])
    shapes = [
        narrow,
        narrow.append(pa.field("note", pa.string())),
        ORDERS,  # a wider type, and a column less
        narrow,
    ]
    for seq, schema in enumerate(shapes, 1):
        row = tuple("t" if pa.types.is_string(field.type) else seq for field in schema)
        file = changes_file(store, table_format, images(schema, [("insert", row)], seq))
        store.append(TABLE, [file], seq)
    rows = plain_rows(tmp_path, table_format, Mode.CHANGES, TABLE).sort_by("_seq")
    assert rows.schema.field("id").type == pa.int64()
    assert rows.select(["id", "note", "state"]).to_pylist() == [
        {"id": 1, "note": None, "state": None},
        {"id": 2, "note": "t", "state": None},
        {"id": 3, "note": None, "state": "t"},
        {"id": 4, "note": None, "state": None},
    ]
    assert opened(tmp_path, table_format, Mode.CHANGES).applied(TABLE) == 4


@pytest.mark.parametrize("table_format", [FormatName.DELTA, FormatName.ICEBERG])
def test_who_was_overtaken_before_its_commit_commits_nothing(
    table_format: FormatName, tmp_path: Path
) -> None:
    """Both have looked at the table before either commits: no look at the lease can tell."""
    stores = [opened(tmp_path, table_format, Mode.CHANGES) for _ in range(2)]
    first = changes_file(stores[0], table_format, images(ORDERS, [("insert", (1, "a"))], 1))
    stores[0].append(TABLE, [first], 1)
    again = [images(ORDERS, [("insert", (2, "b"))], 2) for _ in stores]
    files = [
        changes_file(store, table_format, rows) for store, rows in zip(stores, again, strict=True)
    ]
    assert [store.applied(TABLE) for store in stores] == [1, 1]
    stores[0].append(TABLE, [files[0]], 2)
    (tmp_path / "_binlane").mkdir(exist_ok=True)
    with pytest.raises(StoreError, match="another driver has committed to"):
        stores[1].append(TABLE, [files[1]], 2)
    assert rows_of(tmp_path, table_format, Mode.CHANGES) == [(1, "a"), (2, "b")]


def changes_file(store: TableStore, table_format: FormatName, rows: pa.Table) -> DataFile:
    name = file_name(table_format, "run")
    return write_file(rows, store.uri(TABLE), name, ["_seq"])


@OF_ALL_FORMATS
def test_statements_about_tables(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format)
    other = TableName("shop", "other")
    store.create(TABLE, ORDERS)
    store.create(TABLE, ORDERS)
    assert rows_of(tmp_path, table_format) == []
    merge(store, [run_of(tmp_path, images(ORDERS, inserts([(1, "a")]), 1), ["id"])], ["id"], 1)
    store.rename(TABLE, other)
    store.rename(TABLE, other)
    assert (store.names(), store.read(other).num_rows) == ([other], 1)
    store.rename(other, TABLE)
    store.truncate(TABLE)
    assert (rows_of(tmp_path, table_format), store.applied(TABLE)) == ([], 1)
    store.replace(TABLE, pa.table({"x": pa.array([5], pa.int32())}))
    assert rows_of(tmp_path, table_format) == [(5,)]
    assert opened(tmp_path, table_format).applied(TABLE) == 1
    store.drop(TABLE)
    store.drop(TABLE)
    assert opened(tmp_path, table_format).names() == []


@OF_ALL_FORMATS
@pytest.mark.parametrize(
    "name",
    ["plain", "sp ace", 'q"uote', "per%cent", "a/b", "😀", ".", "имя", "a@b", "`", "_delta_log"],
)
def test_names_become_paths_and_come_back(
    name: str, table_format: FormatName, tmp_path: Path
) -> None:
    table = TableName("shop", name)
    schema = pa.schema([pa.field(f"{name} ,;{{}}()=", pa.int64())])
    opened(tmp_path, table_format).create(table, schema)
    store = opened(tmp_path, table_format)
    assert store.names() == [table]
    store.replace(table, pa.table([pa.array([7])], schema=schema))
    assert store.read(table).to_pylist() == [{schema.names[0]: 7}]
    assert plain_rows(tmp_path, table_format, Mode.CURRENT, table).num_rows == 1


@OF_ALL_FORMATS
def test_small_files_become_few_and_dead_ones_go(table_format: FormatName, tmp_path: Path) -> None:
    store = opened(tmp_path, table_format)
    for number in range(1, 21):
        rows = images(ORDERS, inserts([(number, "a"), (number + 1000, "b")]), 2 * number)
        merge(store, [run_of(tmp_path, rows, ["id"])], ["id"], 2 * number)
        store.compact(TABLE)
        assert len(found_files(store)) <= planning.SMALL_FILES_MAX + 1
    assert len(rows_of(tmp_path, table_format)) == 40
    assert store.applied(TABLE) == 40
    folder = Path(store.uri(TABLE))
    (folder / file_name(table_format, "dead")).write_bytes(b"of a task that died")
    assert store.vacuum(TABLE, 0) > 0
    left = {path.name for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}
    assert left == {Path(path).name for path in found_files(store)}
    assert len(rows_of(tmp_path, table_format)) == 40


def found_files(store: TableStore) -> list[str]:
    snapshot = store.snapshot(TABLE)
    assert snapshot is not None
    return list(snapshot.files)


def test_a_directory_that_was_not_brought_to_its_manifest_is(tmp_path: Path) -> None:
    """Whoever dies between the commit of a plain table and its renames leaves them to the next."""
    store = opened(tmp_path, FormatName.PARQUET)
    merge(store, [run_of(tmp_path, images(ORDERS, inserts([(1, "a")]), 1), ["id"])], ["id"], 1)
    run = run_of(tmp_path, images(ORDERS, [("update_after", (1, "b"))], 2), ["id"])

    def die(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainFormat, "_settle", die)
        with pytest.raises(KeyboardInterrupt):
            merge(store, [run], ["id"], 2)
    assert rows_of(tmp_path, FormatName.PARQUET) == [(1, "a")]
    assert opened(tmp_path, FormatName.PARQUET).applied(TABLE) == 2
    assert rows_of(tmp_path, FormatName.PARQUET) == [(1, "b")]


CHANGES = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["put", "put", "drop", "move"]), st.integers(0, 40)),
        min_size=1,
        max_size=12,
    ),
    min_size=1,
    max_size=4,
)


def logged(
    model: dict[tuple[str, int], str], changes: Sequence[tuple[str, int]], seq: int
) -> list[Image]:
    """Changes of a model as the images that a server logs of them; the model is changed."""
    found: list[Image] = []
    for what, number in changes:
        key = ("tenant" if number % 3 else "other", number)
        target = (key[0], (number * 7) % 41)
        new = f"v{seq + len(found)}"
        if what == "drop" and key in model:
            found.append(("delete", (*key, model.pop(key))))
        elif what == "move" and key in model and target not in model:
            old = model.pop(key)
            model[target] = old
            found += [("update_before", (*key, old)), ("update_after", (*target, old))]
        elif what == "put":
            if key in model:
                found += [("update_before", (*key, model[key])), ("update_after", (*key, new))]
            else:
                found.append(("insert", (*key, new)))
            model[key] = new
    return found


@pytest.mark.parametrize(
    "table_format",
    [
        FormatName.DELTA,
        FormatName.PARQUET,
        pytest.param(FormatName.ICEBERG, marks=pytest.mark.slow),
    ],
)
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(batches=CHANGES, cuts=st.lists(st.integers(0, 20), max_size=2), crash=st.integers(0, 3))
def test_any_changes_give_the_model(
    batches: list[list[tuple[str, int]]],
    cuts: list[int],
    crash: int,
    table_format: FormatName,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Keys of two columns, several runs a batch, tiny files, and one task's work done for nothing."""
    into = tmp_path_factory.mktemp("model")
    schema = schema_of(tenant=pa.string(), id=pa.int32(), value=pa.string())
    key = ["tenant", "id"]
    model: dict[tuple[str, int], str] = {}
    held: Counter[tuple[Any, ...]] = Counter()
    seq = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "TARGET_BYTES_MIN", 400)
        for number, batch in enumerate(batches):
            found = logged(model, batch, seq)
            if not found:
                continue
            rows = images(schema, found, seq)
            seq += len(found)
            held.update(values for op, values in found if op in {"insert", "update_after"})
            edges = sorted({0, len(found), *(min(cut, len(found)) for cut in cuts)})
            parts = [rows.slice(i, j - i) for i, j in pairwise(edges)]
            for mode, stage in ((Mode.CURRENT, run_of), (Mode.HISTORY, versions_of)):
                store = opened(into, table_format, mode)
                runs = [stage(into, part, key) for part in parts]
                if number == crash:  # written and never committed
                    works = store.plan_merge(TABLE, runs, key, schema)
                    [merge_file(work) for work in works]
                    store = opened(into, table_format, mode)
                merge(store, runs, key, seq - 1)
                if number % 2:
                    store.compact(TABLE)
    if held:
        expected = sorted(((*key, value) for key, value in model.items()), key=repr)
        assert rows_of(into, table_format) == expected
        history = plain_rows(into, table_format, Mode.HISTORY, TABLE).to_pylist()
        assert Counter((row["tenant"], row["id"], row["value"]) for row in history) == held
        current = [row for row in history if row["valid_to"] is None]
        assert all(row["is_current"] == (row["valid_to"] is None) for row in history)
        assert sorted(((r["tenant"], r["id"], r["value"]) for r in current), key=repr) == expected

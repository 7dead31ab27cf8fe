from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from binlane.tables.landing.net_changes import COUNT, GONE, added, counted, last_images

IMAGES = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update_before", "update_after", "delete"]),
        st.integers(0, 3),
        st.one_of(st.none(), st.sampled_from(["a", "b"])),
    ),
    min_size=1,
    max_size=30,
)
ADDS = {"insert", "update_after"}


def table(images: list[tuple[str, int, str | None]]) -> pa.Table:
    ops, keys, values = zip(*images, strict=True)
    return pa.table(
        {
            "_op": pa.array(ops, pa.string()),
            "id": pa.array(keys, pa.int32()),
            "value": pa.array(values, pa.string()),
            "_seq": pa.array(range(len(images)), pa.int64()),
        }
    )


@given(IMAGES)
def test_the_last_image_of_each_key_counts(images: list[tuple[str, int, str | None]]) -> None:
    expected = {key: (op not in ADDS, value) for op, key, value in images}
    found = last_images(table(images), ["id"]).to_pylist()
    assert [row["id"] for row in found] == sorted(expected)
    assert {row["id"]: (row[GONE], row["value"]) for row in found} == expected


@given(IMAGES)
def test_keys_of_several_columns(images: list[tuple[str, int, str | None]]) -> None:
    expected = {(key, value): op not in ADDS for op, key, value in images}
    found = last_images(table(images), ["value", "id"]).to_pylist()
    assert {(row["id"], row["value"]): row[GONE] for row in found} == expected
    assert len(found) == len(expected)


@given(IMAGES, st.integers(0, 30))
def test_rows_are_counted(images: list[tuple[str, int, str | None]], cut: int) -> None:
    weights: Counter[tuple[int, str | None]] = Counter()
    for op, key, value in images:
        weights[key, value] += 1 if op in ADDS else -1
    halves = [part for part in (images[:cut], images[cut:]) if part]
    found = added([counted(table(part), ["id", "value"]) for part in halves], ["id", "value"])
    rows = {(row["id"], row["value"]): row[COUNT] for row in found.to_pylist()}
    assert rows == {row: count for row, count in weights.items() if count}

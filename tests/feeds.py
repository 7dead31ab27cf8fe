"""Reading a table's change data feed, and holding it against the table's versions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

OF_A_FEED = ("_change_type", "_commit_version", "_commit_timestamp")
Told = Mapping[str, Sequence[Mapping[str, Any]]]
"""Rows by what became of them."""


def rows_at(uri: str, version: int) -> Counter[tuple[Any, ...]]:
    """The rows of a version."""
    return counted(DeltaTable(uri, version=version).to_pyarrow_table().to_pylist())


def feed_of(uri: str, version: int) -> Told:
    """The rows that a version changed, as delta-rs tells them."""
    table = DeltaTable(uri, version=version)
    reader = table.load_cdf(starting_version=version, ending_version=version)
    return by_kind(pa.table(reader.read_all()).to_pylist())


def by_kind(rows: Sequence[Mapping[str, Any]]) -> Told:
    """Rows of a feed without what it adds, by what became of them."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        own = {name: value for name, value in row.items() if name not in OF_A_FEED}
        found.setdefault(row["_change_type"], []).append(own)
    return found


def counted(rows: Sequence[Mapping[str, Any]]) -> Counter[tuple[Any, ...]]:
    """How often each row is there."""
    return Counter(tuple(row[name] for name in sorted(row)) for row in rows)


def is_change(uri: str, version: int) -> bool:
    """Whether a version's entry in the log says that rows change."""
    entry = (Path(uri) / "_delta_log" / f"{version:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in entry]
    files = [action[kind] for action in actions for kind in action if kind in {"add", "remove"}]
    return any(file["dataChange"] for file in files)


def check_replay(uri: str, key: Sequence[str], since: int = 0) -> Counter[str]:
    """See that each version's feed makes its table of the one before, and tells nothing else.

    Args:
        uri: Of the table.
        key: Columns by which the two rows of an update belong together; empty if there is none.
        since: The first version that is taken as it is.

    Returns:
        How many rows of each kind were told.
    """
    kinds: Counter[str] = Counter()
    for version in range(since + 1, DeltaTable(uri).version() + 1):
        told = feed_of(uri, version)
        kinds.update({kind: len(rows) for kind, rows in told.items()})
        check_version(uri, version, key, told)
    return kinds


def check_version(uri: str, version: int, key: Sequence[str], told: Told) -> None:
    """See that a feed makes a version of the one before, and tells nothing else."""
    before, after = rows_at(uri, version - 1), rows_at(uri, version)
    gone = counted([*told.get("delete", []), *told.get("update_preimage", [])])
    come = counted([*told.get("insert", []), *told.get("update_postimage", [])])
    if not is_change(uri, version):
        assert not told, version
        return
    old, new = (DeltaTable(uri, version=each).schema() for each in (version - 1, version))
    if old != new:  # all rows go, and come with other columns
        assert (gone.total(), come) == (before.total(), after), version
        return
    assert before - gone + come == after, version
    assert not gone - before, version
    assert not gone & come, version
    keys = {
        kind: Counter(tuple(row[name] for name in key) for row in rows)
        for kind, rows in told.items()
    }
    assert keys.get("update_preimage") == keys.get("update_postimage"), version
    if key:
        assert not keys.get("insert", Counter()) & keys.get("delete", Counter()), version

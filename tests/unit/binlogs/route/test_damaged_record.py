"""The record of what was routed, damaged in any part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.route.route_record import RECORD_FILE
from binlane.errors import CorruptStoreError
from tests.routed_files import routed, written


@pytest.mark.parametrize(
    "name, value",
    [
        ("memory", '{"v": 1, "created": [["d", "t", "no hex", "", "", true]]}'),
        ("memory", "{"),
        ("gtids", "0-1"),
        ("position", []),
        ("prepared", 7),
    ],
)
def test_a_record_that_cannot_be_is_told_before_anything_is_routed(
    name: str, value: Any, tmp_path: Path
) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    routed(paths, tmp_path / "out", "LOG ALL")
    record = tmp_path / "out" / RECORD_FILE
    fields = json.loads(record.read_text())
    fields["binlogs"]["b1"][name] = value
    record.write_text(json.dumps(fields))
    with pytest.raises(CorruptStoreError, match="the record of what was routed"):
        routed(paths, tmp_path / "out", "LOG ALL")
    record.write_text(json.dumps([fields]))
    with pytest.raises(CorruptStoreError, match="the record of what was routed"):
        routed(paths, tmp_path / "out", "LOG ALL")

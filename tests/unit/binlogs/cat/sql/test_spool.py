from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlogs.cat.sql.flashback import Spool
from binlane.errors import StoreError


def test_lines_come_back_last_first() -> None:
    spool = Spool(None)
    lines = ["", "a", "ж" * 10, "\udcff", "x" * 3_000_000, *map(str, range(200_000))]
    for line in lines:
        spool.add(line)
    assert list(spool.backwards()) == lines[::-1]
    spool.close()


def test_what_is_cut_is_gone() -> None:
    spool = Spool(None)
    spool.add("kept")
    size = spool.size
    spool.add("cut")
    spool.cut(size)
    spool.add("last")
    assert list(spool.backwards()) == ["last", "kept"]
    spool.close()


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written") as caught:
        Spool(tmp_path / "none")
    assert caught.value.path == str(tmp_path / "none")

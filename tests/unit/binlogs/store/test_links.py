"""Links that somebody has put into a data directory: what they point to stays as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlogs.store.disk import DRAFT_SUFFIX
from binlane.binlogs.store.files import read_index
from binlane.errors import BinlaneError, CorruptStoreError
from tests.routed_files import routed, written


@pytest.mark.parametrize(
    "name",
    ["binlane.lock", "b1/b1.000001", f"b1/b1.index{DRAFT_SUFFIX}", f"route.json{DRAFT_SUFFIX}"],
)
def test_a_link_is_not_written_through(name: str, tmp_path: Path) -> None:
    paths = written("md1011_txn", tmp_path / "in")
    foreign = tmp_path / "foreign"
    foreign.write_bytes(b"of somebody else")
    link = tmp_path / "out" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(foreign)
    with pytest.raises(BinlaneError):
        routed(paths, tmp_path / "out", "LOG ALL")
    assert foreign.read_bytes() == b"of somebody else"


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "./../b/b.000001", "other.000001", "b.000001\0"]
)
def test_an_index_names_files_of_its_binlog_only(name: str, tmp_path: Path) -> None:
    directory = tmp_path / "b"
    directory.mkdir()
    (directory / "b.index").write_text(f"./b.000001\n{name}\n")
    with pytest.raises(CorruptStoreError, match="are expected, oldest first"):
        read_index(directory)

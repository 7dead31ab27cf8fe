"""Files of a store, read by MariaDB's own tool."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.store import Store
from tests.groups import add, create, kill, real_groups, stored

_GTID = re.compile(r"^#.* end_log_pos (\d+) .*\tGTID (\d+-\d+-\d+)", re.MULTILINE)
_IN_USE = "# Warning: this binlog is either in use or was not closed properly.\n"


def printed(paths: Sequence[Path]) -> str:
    """What `mariadb-binlog` prints of files, with every checksum verified."""
    done = subprocess.run(
        [
            "mariadb-binlog",
            "--no-defaults",
            "--verify-binlog-checksum",
            "--base64-output=decode-rows",
            "-vv",
            *paths,
        ],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("fixture", ["md1011_rowimage_full", "md1011_ddl", "md1011_txn"])
def test_the_servers_tool_reads_them_with_every_checksum(tmp_path: Path, fixture: str) -> None:
    groups = [group for group in real_groups(fixture) if group.gtid]
    store = Store.open(tmp_path, StoreSettings(max_binlog_size_bytes=4096))
    add(binlog := create(store), groups)
    paths = [file.path for file in binlog.files()]
    assert len(paths) > 1
    live = printed(paths)
    assert _IN_USE in live
    store.close()
    text = printed(paths)
    assert text == live.replace(_IN_USE, "")
    wanted = [(str(group.events[0].next_position), str(group.gtid)) for group in stored(paths)]
    assert _GTID.findall(text) == wanted
    assert len(wanted) == len(groups)


def test_the_servers_tool_reads_a_file_whose_tail_was_torn(tmp_path: Path) -> None:
    settings = StoreSettings(watermark_interval_s=3600)
    store = Store.open(tmp_path, settings)
    add(binlog := create(store), real_groups("md1011_txn"))
    path = binlog.files()[0].path
    kill(store)
    path.write_bytes(path.read_bytes()[:-7])
    Store.open(tmp_path, settings).close()
    assert len(_GTID.findall(printed([path]))) == len(stored([path])) > 5

"""Binlogs of less than full row images: replicas are equal, and the servers' tools read them."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from binlane.binlogs.store.stored_groups import StoreReader, read_groups
from binlane.log.codec.rows import DeleteRowsEvent
from binlane.log.codec.types import Flavor
from binlane.log.grouping.table_maps import rows_with_tables
from tests.port_load import PortLoad
from tests.port_replicas import FollowedBinlogs
from tests.row_image_load import statements, tables
from tests.servers import execute, mysql_program


def _read_by_tool(flavor: str, path: Path) -> str:
    """What the server's own tool prints of a file."""
    program = ["mariadb-binlog"]
    if flavor == "mysql":
        folder = mysql_program().folder
        if folder is None:
            pytest.skip("mysqlbinlog is looked for where MySQL was unpacked")
        program = [str(folder / "exec"), "/usr/bin/mysqlbinlog"]
    done = subprocess.run([*program, "-vv", str(path)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "replace")


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_replicas_of_less_than_full_images_are_equal(tmp_path: Path, flavor: str) -> None:
    images = ("MINIMAL", "NOBLOB", "FULL_NODUP")
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, images, flavor=flavor)
        load = PortLoad(binlogs.serve, seed=4, through=2, beside=2, length=60)
        load.prepare()
        with load:
            execute(
                binlogs.source,
                "CREATE DATABASE IF NOT EXISTS d2",
                "USE d2",
                *tables(Flavor(flavor)),
                *statements(Flavor(flavor)),
            )
        assert binlogs.problems() == []
        assert "Traceback" not in binlogs.serve.log
        reader = StoreReader(binlogs.serve.data_dir)
        for image in images:
            paths = [file.path for file in reader.files(image.lower())]
            events = [event for group in read_groups(paths) for event in group.events]
            deleted = {
                body.columns_present
                for _, body, table in rows_with_tables(events, file=image)
                if isinstance(body, DeleteRowsEvent) and table.table == "pk"
            }
            present = {bits[0] & 0xF for bits in deleted}
            assert present == {{"MINIMAL": 1, "NOBLOB": 0b1011}.get(image, 0b1111)}
            assert "### DELETE FROM `d2`.`pk`" in _read_by_tool(flavor, paths[0])

"""Binlogs that a real MariaDB encrypts now, with each cipher and key length of its key plugin."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from binlane.binlogs.store.chunks import open_chunks, read_keys
from binlane.errors import UnsupportedError
from binlane.live.provision.private_server import SOURCE_OPTIONS
from binlane.log.codec.query import AnnotateRowsEvent
from binlane.log.grouping.walk import walk
from tests.servers import ServerFactory, execute

KEY_PLUGIN = Path("/usr/lib/mysql/plugin/file_key_management.so")


@pytest.mark.skipif(
    not KEY_PLUGIN.exists(), reason="the key plugin comes with Debian's whole mariadb-server"
)
@pytest.mark.parametrize(
    ("algorithm", "key_length", "checksum"),
    [("AES_CTR", 32, "CRC32"), ("AES_CTR", 16, "NONE"), ("AES_CBC", 24, "NONE")],
)
def test_a_log_is_read_with_the_key_file_of_its_server(
    servers: ServerFactory, tmp_path: Path, algorithm: str, key_length: int, checksum: str
) -> None:
    key_file = tmp_path / "keys.txt"
    key_file.write_text(f"# keys\n2;{secrets.token_hex(16)}\n1;{secrets.token_hex(key_length)}\n")
    options = (
        *SOURCE_OPTIONS,
        "--plugin-load-add=file_key_management",
        f"--file-key-management-filename={key_file}",
        f"--file-key-management-encryption-algorithm={algorithm}",
        "--encrypt-binlog=ON",
        f"--binlog-checksum={checksum}",
    )
    server = servers.start("source", options)
    text = "INSERT INTO shop.t VALUES (1, 'hidden')"
    execute(server, "CREATE DATABASE shop", "CREATE TABLE shop.t (a INT, b TEXT)", text)
    path = server.data_directory / "binlog.000001"
    assert b"hidden" not in path.read_bytes()
    events = list(walk(open_chunks(path), file=str(path), keys=read_keys(key_file)))
    assert text.encode() in [
        event.body.query for event in events if isinstance(event.body, AnnotateRowsEvent)
    ]
    assert events[-1].next_position == path.stat().st_size
    key_file.write_text(f"1;{secrets.token_hex(key_length)}")
    with pytest.raises(UnsupportedError, match="does not open with key 1"):
        list(walk(open_chunks(path), file=str(path), keys=read_keys(key_file)))

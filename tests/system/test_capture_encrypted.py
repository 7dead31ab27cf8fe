"""Capture from servers whose files are encrypted: what they dump, they decrypt."""

from __future__ import annotations

import json
import secrets
import shutil
from pathlib import Path

import pytest

from binlane.live.capture.settings import StartAt
from binlane.live.provision.private_server import (
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from binlane.live.provision.server_programs import MysqlProgram
from binlane.positions import GtidPosition
from tests.servers import ServerFactory, execute, mysql_program
from tests.system.test_capture import capture_of, numbers, position_of, read_until, taken
from tests.system.test_encryption import KEY_PLUGIN


def is_captured(server: PrivateServer, spill: Path) -> None:
    """Take all of a log from several places, and go on with it."""
    execute(
        server,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.t (v TEXT)",
        "INSERT INTO shop.t VALUES ('hidden')",
        "FLUSH BINARY LOGS",
        "INSERT INTO shop.t VALUES ('hidden')",
    )
    for path in server.data_directory.glob("binlog.0*"):
        assert b"hidden" not in path.read_bytes()
    for uses_kernels in (True, False):
        capture = capture_of(server, spill, uses_kernels=uses_kernels)
        groups = read_until(capture, position_of(server))
        assert numbers(groups) == [1, 2, 3, 4]
        assert b"hidden" in b"".join(event.raw or b"" for event in groups[-1].events)
    position, identity = taken(server, spill)
    execute(server, "FLUSH BINARY LOGS", "INSERT INTO shop.t VALUES ('hidden')")
    capture = capture_of(server, spill, position, identity=identity)
    assert numbers(read_until(capture, position_of(server))) == [5]


@pytest.mark.skipif(
    not KEY_PLUGIN.exists(), reason="the key plugin comes with Debian's whole mariadb-server"
)
@pytest.mark.parametrize("checksum", ["CRC32", "NONE"])
def test_mariadb(servers: ServerFactory, tmp_path: Path, checksum: str) -> None:
    key_file = tmp_path / "keys.txt"
    key_file.write_text(f"1;{secrets.token_hex(32)}\n")
    options = (
        *SOURCE_OPTIONS,
        "--plugin-load-add=file_key_management",
        f"--file-key-management-filename={key_file}",
        "--encrypt-binlog=ON",
        f"--binlog-checksum={checksum}",
    )
    server = servers.start("source", options)
    is_captured(server, tmp_path / "spill")
    # From inside of a file, whose beginning says how it is encrypted.
    capture = capture_of(server, tmp_path / "spill", GtidPosition.parse("0-1-4"))
    assert numbers(read_until(capture, position_of(server))) == [5]
    capture = capture_of(server, tmp_path / "spill", StartAt.NOW)
    capture.connect()
    execute(server, "INSERT INTO shop.t VALUES ('hidden')")
    assert numbers(read_until(capture, position_of(server))) == [6]


def test_mysql(servers: ServerFactory, tmp_path: Path) -> None:
    folder = mysql_program().folder
    if folder is None:
        pytest.skip("only a MySQL in a folder of its own can be given a keyring")
    # The keyring is named beside the program and in the folder of its plugins.
    copy = tmp_path / "mysql"
    shutil.copytree(folder, copy, symlinks=True, copy_function=new_link)
    (copy / "exec").unlink()
    shutil.copy(folder / "exec", copy / "exec")
    manifest = {"components": "file://component_keyring_file"}
    (copy / "usr/sbin/mysqld.my").write_text(json.dumps(manifest))
    keyring = {"path": str(tmp_path / "keyring"), "read_only": False}
    plugins = copy / "usr/lib/mysql/plugin"
    (plugins / "component_keyring_file.cnf").write_text(json.dumps(keyring))
    options = (*MYSQL_SOURCE_OPTIONS, "--binlog-encryption=ON")
    server = servers.start("source", options, program=MysqlProgram(copy))
    is_captured(server, tmp_path / "spill")


def new_link(old: str, new: str) -> str:
    Path(new).symlink_to(Path(old).resolve())
    return new

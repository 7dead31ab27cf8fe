"""A private server starts, stops, crashes and comes back with its data."""

from __future__ import annotations

import shutil
from pathlib import Path

import pymysql
import pytest

from binlane.errors import ConfigError, PeerError
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.live.provision.server_programs import MysqlProgram
from tests.servers import ServerFactory, connect, execute


def test_a_source_logs_rows_in_full(mariadb_server: PrivateServer) -> None:
    assert execute(
        mariadb_server,
        "SELECT @@log_bin, @@server_id, @@binlog_format, @@binlog_row_image,"
        " @@binlog_row_metadata, @@gtid_strict_mode",
    ) == ((1, 1, "ROW", "FULL", "FULL", 1),)


def test_it_listens_on_this_machine_only(mariadb_server: PrivateServer) -> None:
    assert execute(mariadb_server, "SELECT @@bind_address, @@port") == (
        ("127.0.0.1", mariadb_server.port),
    )
    with connect(mariadb_server, unix_socket=str(mariadb_server.socket_path)) as connection:
        assert connection.open


def test_it_reads_and_writes_no_files_of_others(
    mariadb_server: PrivateServer, tmp_path: Path
) -> None:
    with pytest.raises(pymysql.OperationalError, match="secure-file-priv"):
        execute(mariadb_server, f"SELECT 1 INTO OUTFILE '{tmp_path}/stolen'")


def test_a_data_directory_is_made_without_the_directory_that_servers_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who else starts removes temporary tables there, and `mariadb-install-db` failed then."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with PrivateServer.start(tmp_path, name="source") as server:
        assert execute(server, "SELECT 1") == ((1,),)
    assert {path.name for path in tmp_path.iterdir()} == {"source", "template-mariadb"}


def test_data_outlives_a_crash_and_a_restart(servers: ServerFactory) -> None:
    server = servers.start("source")
    execute(
        server,
        "CREATE DATABASE kept",
        "CREATE TABLE kept.t (i INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO kept.t VALUES (1), (2)",
    )
    port, first_process = server.port, server.process_id
    server.kill()
    assert not server.is_running
    server.restart()
    assert server.is_running
    assert (server.port, server.process_id != first_process) == (port, True)
    server.restart()
    assert execute(server, "SELECT i FROM kept.t ORDER BY i") == ((1,), (2,))


def test_servers_of_one_directory_are_independent(servers: ServerFactory) -> None:
    source = servers.start("source")
    replica = servers.start("replica", [*SOURCE_OPTIONS, "--server-id=2"])
    execute(source, "CREATE DATABASE only_here")
    assert execute(replica, "SELECT @@server_id") == ((2,),)
    assert execute(replica, "SHOW DATABASES LIKE 'only_here'") == ()


def test_its_end_is_clean_and_asked_for_once_or_twice(servers: ServerFactory) -> None:
    server = servers.start("source")
    server.stop()
    server.stop()
    assert not server.is_running
    assert "Shutdown complete" in server.error_log.read_text()


def test_a_deep_directory_gets_its_socket_elsewhere(
    mariadb_server: PrivateServer, tmp_path: Path
) -> None:
    deep = tmp_path / "/".join(["directory"] * 12)
    shutil.copytree(mariadb_server.directory.parent / "template-mariadb", deep / "template-mariadb")
    with PrivateServer.start(deep, name="deep") as server:
        with connect(server, unix_socket=str(server.socket_path)) as connection:
            assert connection.open
        server.restart()
        assert deep not in server.socket_path.parents
    assert not server.socket_path.parent.exists()


def test_a_taken_port_is_named(mariadb_server: PrivateServer, servers: ServerFactory) -> None:
    with pytest.raises(ConfigError) as caught:
        servers.start("late", port=mariadb_server.port)
    assert caught.value.key == "port"
    assert str(mariadb_server.port) in str(caught.value)


def test_a_bad_option_shows_the_end_of_the_log(servers: ServerFactory) -> None:
    with pytest.raises(PeerError) as caught:
        servers.start("wrong", ["--no-such-option"])
    assert caught.value.phase == "start"
    assert "unknown option '--no-such-option'" in caught.value.hint


def test_a_missing_package_is_named(
    servers: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "binlane.live.provision.server_programs.shutil.which", lambda *_, **__: None
    )
    with pytest.raises(PeerError) as caught:
        servers.start("nothing")
    assert "mariadb-server-core" in caught.value.hint


def test_mysql_logs_rows_in_full(mysql_server: PrivateServer) -> None:
    assert execute(
        mysql_server,
        "SELECT @@log_bin, @@server_id, @@binlog_format, @@binlog_row_image,"
        " @@binlog_row_metadata, @@gtid_mode, @@bind_address, @@port",
    ) == ((1, 1, "ROW", "FULL", "FULL", "ON", "127.0.0.1", mysql_server.port),)
    assert mysql_server.url == f"mysql://root@127.0.0.1:{mysql_server.port}"


def test_mysql_servers_of_one_directory_are_different_servers(
    mysql_server: PrivateServer, servers: ServerFactory
) -> None:
    other = servers.start_mysql("other", "--server-id=2")
    asked = "SELECT @@server_uuid"
    assert execute(other, asked) != execute(mysql_server, asked)
    assert execute(other, "SELECT @@gtid_executed, @@server_id") == (("", 2),)
    other.kill()
    other.restart()
    assert other.is_running


def test_a_folder_without_mysql_is_named(servers: ServerFactory, tmp_path: Path) -> None:
    with pytest.raises(PeerError, match="no MySQL is unpacked in") as caught:
        servers.start("nothing", [], program=MysqlProgram(tmp_path))
    assert "tools/unpack-mysql" in caught.value.hint

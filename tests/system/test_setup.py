"""`binlane setup` on real servers: what it tells, what it mends, and what `--check` says after."""

from __future__ import annotations

import asyncio
import os
import pwd
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from pymysql import OperationalError
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.cli import main
from binlane.client.settings import ServerUrl
from binlane.live.capture.settings import SourceSettings
from binlane.live.port.source_marks import Marker
from binlane.live.provision.private_server import SOURCE_OPTIONS, PrivateServer
from binlane.log.codec.types import Flavor
from tests.certificates import make_certificate
from tests.serve_process import ADMIN, ServeProcess, wait_until
from tests.servers import ServerFactory, connect, execute

MARIADB_AS_INSTALLED = ("--log-bin=binlog", "--server-id=1")
MYSQL_OF_OLD = (
    "--gtid-mode=OFF",
    "--enforce-gtid-consistency=OFF",
    "--binlog-row-metadata=MINIMAL",
    "--binlog-checksum=NONE",
)


def _account(
    server: PrivateServer, directory: Path, *grants: str, may_grant: bool = False
) -> tuple[str, Path]:
    """An account of the server: its URL, and the file with its password."""
    secret = directory / "secret"
    secret.write_text("test'\\binlane\n")
    execute(
        server,
        "CREATE USER binlane@'127.0.0.1' IDENTIFIED BY 'test\\'\\\\binlane'",
        *(
            f"GRANT {grant} ON *.* TO binlane@'127.0.0.1'"
            + (" WITH GRANT OPTION" if may_grant else "")
            for grant in grants
        ),
    )
    return server.url.replace("root@", "binlane@"), secret


def _statements(printed: str) -> list[str]:
    lines = printed.splitlines()
    assert all(line.startswith("-- ") or line.endswith(";") for line in lines), printed
    return [line for line in lines if not line.startswith("-- ")]


def _of_the_log(printed: str) -> list[str]:
    """The statements but those that make what the port needs."""
    return [
        each
        for each in _statements(printed)
        if not any(part in each for part in (" binlane.", " binlane;"))
    ]


def _set_up(*arguments: object) -> int:
    return main(["setup", *map(str, arguments)])


def _id_of(connection: Connection[Cursor]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        ((number,),) = cursor.fetchall()
        return int(number)


def _variables(server: PrivateServer, names: Sequence[str]) -> dict[str, str]:
    listed = ", ".join(f"'{name}'" for name in names)
    rows = execute(server, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})")
    return {str(name): str(value) for name, value in rows}


def test_a_mariadb_as_installed(
    servers: ServerFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start("source", MARIADB_AS_INSTALLED)
    url, secret = _account(server, tmp_path, "ALL PRIVILEGES", may_grant=True)
    assert _set_up("--check", url, "--password-file", secret) == 1
    wanted = capsys.readouterr().out
    assert _of_the_log(wanted) == [
        "SET GLOBAL binlog_format = ROW;",
        "SET GLOBAL binlog_row_metadata = FULL;",
        "SET GLOBAL gtid_strict_mode = ON;",
    ]
    assert "the source has binlog_format = MIXED" in wanted
    # Nothing was changed, and the script is one: a client runs it as it is.
    assert _variables(server, ["binlog_format"]) == {"binlog_format": "MIXED"}
    with connect(server) as waiting:
        assert _set_up(url, "--password-file", secret) == 0
        done = capsys.readouterr().out
        sessions = [line for line in done.splitlines() if "until their clients connect" in line]
        assert str(_id_of(waiting)) in sessions[0]
    assert _statements(done) == _statements(wanted)
    assert "-- [mariadbd]\n-- binlog_format = ROW\n-- binlog_row_metadata = FULL\n" in done
    assert done.endswith("-- nothing is missing\n")
    assert _set_up("--check", url, "--password-file", secret) == 0
    assert _statements(capsys.readouterr().out) == []


def test_a_mysql_without_gtids_gets_them_while_it_runs(
    servers: ServerFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start_mysql("source", *MYSQL_OF_OLD)
    url, secret = _account(server, tmp_path, "ALL PRIVILEGES", may_grant=True)
    execute(server, "CREATE DATABASE shop", "CREATE TABLE shop.t (a INT PRIMARY KEY)")
    assert _set_up("--check", url, "--password-file", secret) == 1
    wanted = capsys.readouterr().out
    assert _of_the_log(wanted) == [
        "SET PERSIST binlog_row_metadata = FULL;",
        "SET PERSIST binlog_checksum = CRC32;",
        "SET PERSIST enforce_gtid_consistency = ON;",
        "SET PERSIST gtid_mode = OFF_PERMISSIVE;",
        "SET PERSIST gtid_mode = ON_PERMISSIVE;",
        "SET PERSIST gtid_mode = ON;",
    ]
    assert _set_up(url, "--password-file", secret) == 0
    assert _statements(capsys.readouterr().out) == _statements(wanted)
    server.options = tuple(o for o in server.options if o not in MYSQL_OF_OLD)
    server.restart()
    assert _set_up("--check", url, "--password-file", secret) == 0
    assert _variables(server, ["gtid_mode", "binlog_row_metadata"]) == {
        "gtid_mode": "ON",
        "binlog_row_metadata": "FULL",
    }


def test_values_that_a_restart_of_mysql_would_lose_are_persisted(
    servers: ServerFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start_mysql("source", "--binlog-row-metadata=MINIMAL")
    assert _set_up("--quiet", server.url) == 0
    execute(server, "RESET PERSIST", "SET GLOBAL binlog_row_metadata = MINIMAL")
    capsys.readouterr()
    execute(server, "SET GLOBAL binlog_row_metadata = FULL")
    with connect(server) as old:
        with old.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = STATEMENT")
        assert _set_up("--check", server.url) == 0
        told = capsys.readouterr().out
        assert _statements(told) == ["SET PERSIST binlog_row_metadata = FULL;"]
        assert f"until their clients connect anew: {_id_of(old)}\n" in told
    assert _set_up("--quiet", server.url) == 0
    assert capsys.readouterr().out == ""
    assert execute(server, "SELECT VARIABLE_NAME FROM performance_schema.persisted_variables") == (
        ("binlog_row_metadata",),
    )


def test_an_account_that_may_do_nothing_is_told_what_somebody_else_must_do(
    mariadb_server: PrivateServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, secret = _account(mariadb_server, tmp_path)
    grants = [
        "GRANT REPLICATION SLAVE ON *.* TO 'binlane'@'127.0.0.1';",
        "GRANT BINLOG MONITOR ON *.* TO 'binlane'@'127.0.0.1';",
        "GRANT SELECT, SHOW VIEW, TRIGGER ON *.* TO 'binlane'@'127.0.0.1';",
    ]
    try:
        for arguments in (["--check"], []):
            assert _set_up(*arguments, url, "--password-file", secret) == 1
            told = capsys.readouterr().out
            assert _statements(told) == grants
            assert (
                "-- the account does not see whether the source has the table binlane.marks" in told
            )
        execute(mariadb_server, *grants)
        # Now it sees that more lacks, which it may not mend.
        assert _set_up("--check", url, "--password-file", secret) == 1
        assert _of_the_log(capsys.readouterr().out) == []
    finally:
        execute(mariadb_server, "DROP USER binlane@'127.0.0.1'")


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_an_account_is_made(
    servers: ServerFactory, flavor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cert, key = make_certificate(tmp_path, "localhost")
    server = (
        servers.start_mysql("made")
        if flavor == "mysql"
        else servers.start("made", (*SOURCE_OPTIONS, f"--ssl-cert={cert}", f"--ssl-key={key}"))
    )
    sees = "SELECT, SHOW VIEW, TRIGGER" + (", SHOW_ROUTINE" if flavor == "mysql" else "")
    end = "REPLICATION CLIENT" if flavor == "mysql" else "BINLOG MONITOR"
    secret = tmp_path / "made"
    arguments = ["--create-user", "maker@127.0.0.1", "--create-password-file", secret, server.url]
    assert _set_up("--check", *arguments) == 1
    planned = capsys.readouterr().out
    how = "WITH caching_sha2_password AS" if flavor == "mysql" else "BY PASSWORD"
    assert _of_the_log(planned) == [
        f"CREATE USER 'maker'@'127.0.0.1' IDENTIFIED {how} '<hash of the password>';",
        "GRANT REPLICATION SLAVE ON *.* TO 'maker'@'127.0.0.1';",
        f"GRANT {end} ON *.* TO 'maker'@'127.0.0.1';",
        f"GRANT {sees} ON *.* TO 'maker'@'127.0.0.1';",
    ]
    assert "GRANT SELECT, INSERT, UPDATE ON binlane.marks TO 'maker'@'127.0.0.1';" in planned
    assert not secret.exists()
    assert _set_up(*arguments) == 0
    password = secret.read_text().strip()
    assert secret.stat().st_mode & 0o777 == 0o600
    printed = capsys.readouterr().out
    assert set(_statements(planned)) <= set(_statements(printed))
    assert password not in printed
    for options in ({}, {"ssl": {"check_hostname": False}}):
        with (
            connect(server, user="maker", password=password, **options) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
            ((_, cipher),) = cursor.fetchall()
            assert bool(cipher) == bool(options)
    # The source's log goes to whoever may read it.
    logs = sorted(server.data_directory.glob("binlog.0*"))
    assert logs
    assert not any(password.encode() in log.read_bytes() for log in logs)
    assert _set_up(*arguments) == 0
    assert "its password stays" in capsys.readouterr().out
    url = server.url.replace("root@", "maker@")
    assert _set_up("--check", url, "--password-file", secret) == 0


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_an_account_that_may_replicate_is_all_that_binlogs_of_rows_need(
    servers: ServerFactory, flavor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start_mysql("rows") if flavor == "mysql" else servers.start("rows")
    execute(server, "CREATE DATABASE shop", "CREATE TABLE shop.t (a INT PRIMARY KEY)")
    serve = ServeProcess(tmp_path / "serve", server, extra="[http]\nport = 0\n")
    secret = tmp_path / "serve" / "secret"
    secret.unlink()
    arguments = ["--rows-only", "--create-user", ADMIN, "--create-password-file", secret]
    assert _set_up(*arguments, server.url) == 0
    printed = capsys.readouterr().out
    assert _statements(printed)[1:] == [f"GRANT REPLICATION SLAVE ON *.* TO '{ADMIN}'@'%';"]
    assert "for binlogs of rows this is all" in printed
    url = server.url.replace("root@", f"{ADMIN}@")
    assert _set_up("--check", "--rows-only", url, "--password-file", secret) == 0
    assert _set_up("--check", url, "--password-file", secret) == 1
    with serve:
        serve.execute_as_root("CREATE BINLOG 'rows' LOG(shop)")
        serve.execute_as_root("INSERT INTO shop.t VALUES (1)", "DELETE FROM shop.t")
        ((_, _, _, position, *_, state),) = serve.execute_as_root("SHOW BINLOGS")
        wait_until(lambda: len(serve.gtids("rows")) == 2)
        assert (bool(position), state) == (True, "OPEN")
        wait_until(lambda: serve.get("/healthz") == (200, "ok\n"))
        # What it goes without is said once each.
        wait_until(lambda: "are not judged" in serve.log)
        assert serve.log.count("are not judged") == 1
        assert serve.log.count("the end of the source's log is not known") == 1


@pytest.mark.parametrize("purpose", [[], ["--rows-only"]])
def test_an_account_that_cannot_be_made_lacks(
    mariadb_server: PrivateServer,
    purpose: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # It sees accounts, and may make none.
    url, secret = _account(mariadb_server, tmp_path, "SELECT")
    new = ["--create-user", "maker", "--create-password-file", tmp_path / "made"]
    try:
        assert _set_up(*purpose, *new, url, "--password-file", secret) == 1
    finally:
        execute(mariadb_server, "DROP USER binlane@'127.0.0.1'")
    told = capsys.readouterr().out
    assert "-- refused: the server says: Access denied" in told
    assert "-- still: the account maker@% lacks REPLICATION SLAVE" in told


def test_the_password_comes_from_the_environment(
    mariadb_server: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, secret = _account(mariadb_server, tmp_path, "REPLICATION SLAVE")
    try:
        assert _set_up("--check", url) == 3
        monkeypatch.setenv("MYSQL_PWD", secret.read_text().strip())
        assert _set_up("--check", url) == 1
        by_socket = f"{url}?socket={mariadb_server.socket_path}".replace("127.0.0.1", "localhost")
        execute(mariadb_server, "RENAME USER binlane@'127.0.0.1' TO binlane@localhost")
        assert _set_up("--check", by_socket) == 1
    finally:
        execute(mariadb_server, "DROP USER IF EXISTS binlane@'127.0.0.1', binlane@localhost")


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_an_account_of_the_operating_system_over_the_socket(
    servers: ServerFactory, flavor: str
) -> None:
    user = pwd.getpwuid(os.geteuid()).pw_name
    if flavor == "mariadb":
        server = servers.start("source")
        how = "VIA mysql_native_password USING 'invalid' OR unix_socket"
    else:
        server = servers.start_mysql("source", "--plugin-load-add=auth_socket.so")
        how = "WITH auth_socket"
    execute(
        server,
        f"CREATE USER IF NOT EXISTS {user}@localhost",
        f"GRANT ALL ON *.* TO {user}@localhost",
        f"ALTER USER {user}@localhost IDENTIFIED {how}",
    )
    url = f"{flavor}://{user}@localhost?socket={server.socket_path}"
    assert _set_up(url) == 0
    assert _set_up("--check", url) == 0


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_what_the_port_needs(
    servers: ServerFactory, flavor: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start_mysql("source") if flavor == "mysql" else servers.start("source")
    execute(server, "CREATE DATABASE shop", "CREATE USER app@'127.0.0.1'")
    execute(server, "GRANT ALL ON shop.* TO app@'127.0.0.1'")
    arguments = ["--create-user", "maker@127.0.0.1", "--create-password-file", tmp_path / "made"]
    assert _set_up(*arguments, server.url) == 0
    capsys.readouterr()
    # Nothing of it is for clients.
    with (
        connect(server, user="app") as connection,
        connection.cursor() as cursor,
        pytest.raises(OperationalError, match="denied"),
    ):
        cursor.execute("SELECT * FROM binlane.marks")
    tables = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'binlane'"
    routines = "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'binlane'"
    assert execute(server, tables) == (("marks",),)
    assert execute(server, routines) == ((0,),)
    position = "@@GLOBAL.gtid_executed" if flavor == "mysql" else "@@GLOBAL.gtid_binlog_pos"

    def logged() -> int:
        return int(str(execute(server, f"SELECT {position}")[0][0]).rpartition("-")[2])

    before = logged()
    password = (tmp_path / "made").read_text().strip()
    url = ServerUrl.parse(server.url.replace("root@", "maker@"))
    settings = SourceSettings(url=url, password=password)
    marker = Marker(settings, Flavor(flavor))

    async def mark() -> list[str]:
        await marker.open()
        return [await marker.mark(thread_id, time.monotonic()) for thread_id in (7, 7, 8)]

    told = asyncio.run(mark())
    marker.close()
    # Each makes a group, also of what was there before.
    assert [int(gtid.rpartition("-")[2]) for gtid in told] == [before + each for each in (1, 2, 3)]
    assert logged() == before + 3
    assert execute(server, "SELECT id, thread, number FROM binlane.marks") == ((1, 8, 3),)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_what_the_port_needs_may_be_made_by_hand(
    servers: ServerFactory, flavor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start_mysql("source") if flavor == "mysql" else servers.start("source")
    # Who does not let `setup` change anything runs the script by himself.
    assert _set_up("--check", server.url) == 1
    execute(server, *_statements(capsys.readouterr().out))
    assert _set_up("--check", server.url) == 0


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_source_may_do_without_marks(
    servers: ServerFactory, flavor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start_mysql("source") if flavor == "mysql" else servers.start("source")
    assert _set_up("--no-marks", server.url) == 0
    assert "binlane.marks" not in capsys.readouterr().out
    assert execute(server, "SHOW DATABASES LIKE 'binlane'") == ()
    assert _set_up("--check", "--no-marks", server.url) == 0
    capsys.readouterr()
    assert _set_up("--check", server.url) == 1
    told = capsys.readouterr().out
    assert "--no-marks does without" in told
    assert _of_the_log(told) == []


_OF_OLD = (
    "CREATE DATABASE binlane",
    "CREATE TABLE binlane.marks (id INT PRIMARY KEY, number INT) COMMENT 'of binlane, version 1'",
    "CREATE PROCEDURE binlane.lane(number INT) COMMENT 'of binlane, version 1' DO 1",
    "CREATE PROCEDURE binlane.mark() COMMENT 'of binlane, version 1' DO 1",
    "CREATE USER binlane_lane@localhost",
)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_what_the_port_needs_is_made_anew_where_it_is_older(
    servers: ServerFactory, flavor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start_mysql("source") if flavor == "mysql" else servers.start("source")
    execute(server, *_OF_OLD)
    assert _set_up("--check", server.url) == 1
    assert "database binlane holds is of an older binlane" in capsys.readouterr().out
    assert _set_up(server.url) == 0
    capsys.readouterr()
    for left in (
        "SELECT * FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'binlane'",
        "SELECT * FROM mysql.user WHERE User = 'binlane_lane'",
        "SELECT * FROM binlane.marks WHERE thread = 7",
    ):
        assert execute(server, left) == ()
    assert _set_up("--check", server.url) == 0
    # A table of a later one stays.
    execute(server, "ALTER TABLE binlane.marks COMMENT 'of binlane, version 99'")
    assert _set_up("--check", server.url) == 0
    execute(server, "ALTER TABLE binlane.marks COMMENT 'of binlane, version 1'")
    assert _set_up("--check", server.url) == 1
    assert _set_up(server.url) == 0


def test_an_account_keeps_its_right_to_a_table_that_is_made_anew(
    servers: ServerFactory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start("source")
    arguments = ["--create-user", "maker@127.0.0.1", "--create-password-file", tmp_path / "made"]
    assert _set_up(*arguments, server.url) == 0
    execute(server, "ALTER TABLE binlane.marks COMMENT 'of binlane, version 1'")
    assert _set_up(*arguments, server.url) == 0
    capsys.readouterr()
    with (
        connect(server, user="maker", password=(tmp_path / "made").read_text().strip()) as maker,
        maker.cursor() as cursor,
    ):
        cursor.execute("INSERT INTO binlane.marks VALUES (1, 2, 3)")
    execute(server, "REVOKE UPDATE ON binlane.marks FROM maker@'127.0.0.1'")
    assert _set_up("--check", *arguments, server.url) == 1
    wanted = _statements(capsys.readouterr().out)
    assert wanted == ["GRANT SELECT, INSERT, UPDATE ON binlane.marks TO 'maker'@'127.0.0.1';"]


def test_a_database_of_that_name_that_is_somebody_elses(
    mariadb_server: PrivateServer, capsys: pytest.CaptureFixture[str]
) -> None:
    execute(mariadb_server, "CREATE DATABASE binlane", "CREATE TABLE binlane.accounts (a INT)")
    try:
        assert _set_up(mariadb_server.url) == 1
        told = capsys.readouterr().out
        assert _statements(told) == []
        assert "a database binlane that is not binlane's: it holds accounts\n" in told
        assert execute(mariadb_server, "SHOW TABLES IN binlane") == (("accounts",),)
    finally:
        execute(mariadb_server, "DROP DATABASE binlane")


def test_a_server_without_a_log_needs_a_restart(
    servers: ServerFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    server = servers.start("source", ["--binlog-format=ROW", "--gtid-strict-mode=ON"])
    assert _set_up(server.url) == 1
    told = capsys.readouterr().out
    assert "-- the source writes no binlog" in told
    assert "--log-bin" in told


def test_a_server_that_is_not_there(unused_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert _set_up("--check", f"mysql://root@127.0.0.1:{unused_port}") == 3
    assert capsys.readouterr().err.startswith("binlane: the server cannot be reached")


@pytest.fixture
def unused_port(servers: ServerFactory) -> int:
    """A port that nobody listens on any more."""
    server = servers.start("gone", [])
    server.stop()
    return server.port


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-url"],
        ["mariadb://root:secret@127.0.0.1"],
        ["--create-user", "binlane", "mariadb://root@127.0.0.1"],
        ["--create-password-file", "secret", "mariadb://root@127.0.0.1"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert _set_up(*arguments) == 2

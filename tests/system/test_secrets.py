"""Passwords: each is in nothing that binlane writes, shows or tells, and replicas have its account.

Every password of these tests begins alike, whichever way it comes, so that one search finds any.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pymysql
import pytest

from binlane.live.answers.system_tables.system_columns import TABLES
from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.commands import BinlogDump, RegisterSlave
from binlane.log.codec.packets.flags import DumpFlag
from binlane.log.codec.packets.replies import is_error
from tests.lent_servers import LENT
from tests.port_replicas import replica_status
from tests.raw_client import RawClient
from tests.serve_process import ADMIN, ServeProcess, wait_until, worker_processes
from tests.servers import ServerFactory, connect, execute

MARK: Final = "Gehe1m"
BINLOGS: Final = {
    "rows": "",
    "texts": "FORMAT='STATEMENT'",
    "both": "FORMAT='MIXED'",
    "scoped": "IGNORE(crm)",
}
PAGE: Final = f"{MARK}-of-the-page"
EXTRA: Final = (
    '[http]\nport = 0\npassword_file = "page"\n[log]\nlevel = "debug"\n[gateway]\nworkers = {}\n'
)
PREPARE, EXECUTE = b"\x16", b"\x17"

# {u}1 is an account, and {p}1 its password; replicas must have those below 90.
_EVENT: Final = (
    "CREATE EVENT shop.e_{u} ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO"
    " CREATE USER {u}90 IDENTIFIED BY '{p}90'"
)
OF_MARIADB: Final = (
    "CREATE USER {u}1 IDENTIFIED BY '{p}1'",
    "CREATE OR REPLACE USER {u}2@'%' IDENTIFIED BY '{p}2''x'",
    "CREATE USER IF NOT EXISTS {u}3 IDENTIFIED /* so */ BY \"{p}3\", {u}4 IDENTIFIED BY '{p}4\\n'",
    "CREATE USER {u}5 IDENTIFIED VIA mysql_native_password USING PASSWORD('{p}5') OR unix_socket",
    "GRANT SELECT ON shop.* TO {u}6 IDENTIFIED BY '{p}6'",
    "CREATE USER {u}7",
    "SET PASSWORD FOR {u}7 = PASSWORD('{p}7')",
    "CREATE USER {u}8 IDENTIFIED BY 'other'",
    "ALTER USER {u}8 IDENTIFIED BY '{p}8'",
    "SET STATEMENT sql_mode = '' FOR CREATE USER {u}9 IDENTIFIED BY '{p}9'",
    "/*M!100100 CREATE USER {u}10 IDENTIFIED BY '{p}10' */",
    "EXECUTE IMMEDIATE 'CREATE USER {u}11 IDENTIFIED BY ''{p}11'''",
    "CREATE PROCEDURE shop.p_{u}() CREATE USER {u}12 IDENTIFIED BY '{p}12'",
    "CALL shop.p_{u}()",
    (
        "CREATE PROCEDURE shop.q_{u}()"
        " BEGIN EXECUTE IMMEDIATE \"CREATE USER {u}13 IDENTIFIED BY '{p}13'\"; END"
    ),
    "CALL shop.q_{u}()",
    "BEGIN NOT ATOMIC CREATE USER {u}14 IDENTIFIED BY '{p}14'; END",
    "CREATE USER {u}91 IDENTIFIED VIA mysql_old_password USING PASSWORD('{p}91')",
    _EVENT,
)
OF_MYSQL: Final = (
    "CREATE USER {u}1 IDENTIFIED BY '{p}1'",
    "CREATE USER {u}2@'%' IDENTIFIED BY '{p}2''x'",
    "CREATE USER IF NOT EXISTS {u}3 IDENTIFIED /* so */ BY \"{p}3\", {u}4 IDENTIFIED BY '{p}4\\n'",
    "CREATE USER {u}5 IDENTIFIED WITH sha256_password BY '{p}5'",
    "CREATE USER {u}7",
    "SET PASSWORD FOR {u}7 = '{p}7'",
    "CREATE USER {u}8 IDENTIFIED BY 'other'",
    "ALTER USER {u}8 IDENTIFIED BY '{p}8' RETAIN CURRENT PASSWORD",
    "PREPARE s FROM 'CREATE USER {u}11 IDENTIFIED BY ''{p}11'''",
    "EXECUTE s",
    "CREATE PROCEDURE shop.p_{u}() CREATE USER {u}12 IDENTIFIED BY '{p}12'",
    "CALL shop.p_{u}()",
    (
        "CREATE PROCEDURE shop.q_{u}()"
        " CREATE USER {u}13 IDENTIFIED WITH caching_sha2_password BY '{p}13'"
    ),
    "CALL shop.q_{u}()",
    _EVENT,
)
ENDS: Final = {"2": "'x", "4": "\n"}
"""What a password is longer by."""
_ACCOUNT: Final = re.compile(r"\{p\}(\d+)")
# What is refused, by the source, by binlane or because it cannot be read.
REFUSED: Final = (
    *("CREATE USER {u}1 IDENTIFIED BY '{p}'", "CREATE USER {u}1 IDENTIFIED BY '{p}' NONSENSE"),
    *("CREATE USER x IDENTIFIED BY '{p}", "SELECT '{p}' FROM shop.nothing"),
    *("CREATE BINLOG '{p}' LOG(", "CREATE BINLOG 'x' LOG({p}.{p}.{p})"),
    "EXPLAIN BINLOG CREATE USER z IDENTIFIED BY '{p}'",
    *(
        "INSERT INTO shop.nothing VALUES ('{p}', 1)",
        "PREPARE s FROM 'CREATE USER z IDENTIFIED BY ''{p}'",
    ),
    "GRANT READ ON BINLOG 'rows' TO {u}1 IDENTIFIED BY '{p}'",
    "SELECT * FROM system.binlogs WHERE name = CONCAT('{p}', (SELECT",
    "CHANGE MASTER TO MASTER_PASSWORD = '{p}' NONSENSE",
    "CREATE SERVER s FOREIGN DATA WRAPPER nothing OPTIONS (PASSWORD '{p}') NONSENSE",
)


def filled(statement: str, prefix: str) -> str:
    """A statement on accounts whose names begin with a prefix, with their passwords."""
    return statement.replace("{u}", prefix).replace("{p}", MARK + prefix)


@dataclass(frozen=True)
class Scene:
    """A source, its port and a replica of the binlog `scoped`.

    Attributes:
        source: The source.
        serve: The port.
        replica: Follows it.
        passwords: By account, of those that are in binlogs.
        secret: The password of binlane's own account.
        told: What binlane's programs printed.
    """

    source: PrivateServer
    serve: ServeProcess
    replica: PrivateServer
    passwords: dict[str, str]
    secret: str
    told: list[str]

    @property
    def is_mysql(self) -> bool:
        return self.source.program.scheme == "mysql"


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def scene(
    request: pytest.FixtureRequest,
    server_directory: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    """All of it, behind every way by which a password comes."""
    directory = tmp_path_factory.mktemp(f"secrets-{request.param}")
    is_mysql = request.param == "mysql"
    with ExitStack() as stack:
        servers = ServerFactory(LENT, server_directory, f"secrets-{request.param}", stack)
        if is_mysql:
            source = servers.start_mysql("source")
            replica = servers.start_mysql("replica", "--server-id=9", "--skip-log-bin")
        else:
            source = servers.start("source")
            replica = servers.start("replica", ("--server-id=9", "--plugin-maturity=alpha"))
        secret = f"{MARK}-of-binlane"
        serve = ServeProcess(
            directory / "serve",
            source,
            extra=EXTRA.format(2 if is_mysql else 0),
            is_forked=False,  # its command line and environment are read
        )
        (serve.directory / "secret").write_text(secret)
        (serve.directory / "page").write_text(PAGE)
        told = [_set_up(serve)]
        stack.enter_context(serve)
        for name, clauses in BINLOGS.items():
            with connect(source, port=serve.port) as session, session.cursor() as cursor:
                cursor.execute(f"CREATE BINLOG '{name}' {clauses}")
        execute(source, *(f"CREATE DATABASE {name}" for name in ("shop", "crm")))
        execute(source, "CREATE TABLE shop.t (a INT)")
        _follow(replica, serve, secret)
        scene = Scene(source, serve, replica, {}, secret, told)
        _run_all(scene)
        yield scene


def _set_up(serve: ServeProcess) -> str:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "binlane", "setup", serve.source.url, "--create-user", ADMIN),
            *("--create-password-file", str(serve.directory / "secret")),
        ],
        env=os.environ | {"MYSQL_PWD": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout + done.stderr


def _follow(replica: PrivateServer, serve: ServeProcess, secret: str) -> None:
    words = ("SOURCE", "REPLICATION SOURCE", "REPLICA")
    more = ", SOURCE_SSL = 1"
    if replica.program.scheme == "mariadb":
        words, more = ("MASTER", "MASTER", "SLAVE"), ""
    own, change, start = words
    execute(
        replica,
        f"CHANGE {change} TO {own}_HOST='127.0.0.1', {own}_PORT={serve.port}, {own}_USER='{ADMIN}',"
        f" {own}_PASSWORD='{secret}', {own}_LOG_FILE='scoped.000001', {own}_LOG_POS=4,"
        f" {own}_CONNECT_RETRY=1{more}",
        f"START {start}",
    )


def _run_all(scene: Scene) -> None:
    statements = OF_MYSQL if scene.is_mysql else OF_MARIADB
    for prefix, port in (("beside", scene.source.port), ("through", scene.serve.port)):
        _run(scene, port, [filled(one, prefix) for one in statements])
        _run_prepared(port, filled("CREATE USER {u}20 IDENTIFIED BY '{p}20'", prefix))
        numbers = {each for one in statements for each in _ACCOUNT.findall(one)}
        for number in sorted(each for each in numbers if int(each) < 90):
            scene.passwords[f"{prefix}{number}"] = MARK + prefix + number + ENDS.get(number, "")
        for one in REFUSED:
            with suppress(pymysql.MySQLError):
                _run(scene, port, [filled(one, prefix)])
    _log_in(scene)
    _ask_for_dumps(scene)


def _run(scene: Scene, port: int, statements: Sequence[str]) -> None:
    with connect(scene.source, port=port) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION autocommit = 1")
        for statement in statements:
            cursor.execute(statement)
            while cursor.nextset():
                pass


def _run_prepared(port: int, statement: str) -> None:
    """In the protocol of prepared statements, which not every server takes accounts by."""
    with RawClient(port) as client:
        reply = client.say(PREPARE + statement.encode())[0]
        if not is_error(reply):
            client.ok(EXECUTE + reply[1:5] + bytes(1) + (1).to_bytes(4, "little"))


def _log_in(scene: Scene) -> None:
    """By each plugin, with right and wrong passwords, with and without TLS, and in a session's middle."""
    for account, password in [*scene.passwords.items(), (ADMIN, scene.secret)]:
        for options in ({"ssl": {"check_hostname": False}}, {"ssl_disabled": True}):
            for given in (password, f"{MARK}-wrong"):
                try:
                    with pymysql.connect(
                        host="127.0.0.1",
                        port=scene.serve.port,
                        user=account,
                        password=given,
                        **options,
                    ) as session:
                        assert given == password
                        session.ping()
                except pymysql.MySQLError as error:
                    scene.told.append(str(error))
    # A name that is one's password.
    with suppress(pymysql.MySQLError):
        pymysql.connect(
            host="127.0.0.1", port=scene.serve.port, user="root", password=f"{MARK}-root"
        )


def _ask_for_dumps(scene: Scene) -> None:
    """A replica says its `report_password`."""
    register = RegisterSlave(server_id=77, host="h", user="u", password=f"{MARK}-reported")
    with RawClient(scene.serve.port) as client:
        client.say(register.encode())
        settings = "SET @mariadb_slave_capability = 4, @master_binlog_checksum = 'CRC32'"
        client.query(settings)
        dump = BinlogDump(position=4, flags=DumpFlag.NON_BLOCK, server_id=77, file="rows.000001")
        scene.told.extend(packet.decode("latin-1") for packet in client.dump(dump.encode()))
    assert any("CREATE USER" in each for each in scene.told)


def test_the_replica_has_the_accounts_with_their_passwords(scene: Scene) -> None:
    _wait_for(scene)
    passwords = scene.passwords
    assert len(passwords) >= 20
    ways: list[dict[str, Any]] = [{"ssl_disabled": True}]
    if scene.is_mysql:
        ways.append({"ssl": {"check_hostname": False}, "ssl_disabled": False})
    for account, password in passwords.items():
        for way in ways:
            with connect(scene.replica, user=account, password=password, **way) as session:
                assert session.open


def _wait_for(scene: Scene) -> None:
    """Wait until the replica has all."""
    execute(scene.source, "CREATE TABLE shop.last (a INT)")

    def is_there() -> bool:
        status = replica_status(scene.replica)
        problem = status["Last_SQL_Error"] or status["Last_IO_Error"]
        assert not problem or "error connecting" in problem.lower(), problem
        return bool(execute(scene.replica, "SHOW TABLES FROM shop LIKE 'last'"))

    wait_until(is_there)


def test_nothing_of_a_password_is_in_what_binlane_keeps(scene: Scene) -> None:
    for name in BINLOGS:
        _wait_until_all_is_in(scene, name)
    found = [
        f"{path.relative_to(scene.serve.directory)}: {_around(path.read_bytes())!r}"
        for path in sorted(scene.serve.directory.rglob("*"))
        if path.is_file()
        and path.name not in ("secret", "page")
        and MARK.encode() in path.read_bytes()
    ]
    assert not found
    for name in BINLOGS:  # it is there that they would be
        texts = scene.serve.binlog_bytes(name)
        assert texts.count(b"CREATE USER") >= 20


def _wait_until_all_is_in(scene: Scene, name: str) -> None:
    if scene.source.program.scheme == "mysql":
        done = str(execute(scene.source, "SELECT @@gtid_executed")[0][0]).rpartition("-")[2]
    else:
        done = str(execute(scene.source, "SELECT @@gtid_binlog_pos")[0][0]).rpartition("-")[2]

    def is_in() -> bool:
        rows = _at_the_port(scene, "SHOW BINLOGS")
        return any(row[0] == name and str(row[3]).endswith(done) for row in rows)

    wait_until(is_in)


def _at_the_port(scene: Scene, statement: str) -> tuple[tuple[Any, ...], ...]:
    with connect(scene.source, port=scene.serve.port) as session, session.cursor() as cursor:
        cursor.execute(statement)
        return tuple(cursor.fetchall())


def _around(data: bytes) -> bytes:
    at = data.index(MARK.encode())
    return data[max(0, at - 80) : at + 40]


def test_nothing_of_a_password_is_told(scene: Scene) -> None:
    told: dict[str, str] = {str(place): text for place, text in enumerate(scene.told)}
    for path in ("/", "/metrics", "/healthz", "/api/status", "/api/binlogs"):
        told[path] = _page(scene, path, PAGE)
        told[f"{path}, refused"] = _page(scene, path, f"{MARK}-wrong")
        assert told[path] != told[f"{path}, refused"] or path == "/healthz"
    questions = [f"SELECT * FROM system.{table}" for table in TABLES]
    questions += [f"SHOW BINLOG EVENTS IN '{name}.000001'" for name in BINLOGS]
    questions += ["SHOW BINLOGS", "SHOW GRANTS ON BINLOG", "SHOW WARNINGS"]
    for question in questions:
        told[question] = str(_at_the_port(scene, question))
    for process in (scene.serve.process_id, *worker_processes(scene.serve)):
        for name in ("cmdline", "environ"):
            told[f"{process}/{name}"] = Path(f"/proc/{process}/{name}").read_text()
    data = scene.serve.data_dir
    for name in BINLOGS:
        path = str(data / "binlogs" / name / f"{name}.000001")
        for arguments in (
            ["cat", "-vv"],
            ["cat", "--format=json"],
            ["cat", "--summary"],
            ["verify"],
        ):
            told[f"{arguments} {name}"] = _printed(*arguments, path)
    told["config"] = _printed(
        "config", "check", "--config", str(scene.serve.directory / "binlane.toml")
    )
    assert "password_file" in told["config"]
    assert not [place for place, text in told.items() if MARK in text]


def _page(scene: Scene, path: str, password: str) -> str:
    """What is answered over HTTP, heads too."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{scene.serve.http_port}{path}",
        headers={"Authorization": f"Bearer {password}"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return f"{answer.headers}{answer.read().decode()}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.headers}{error.read().decode()}"


def _printed(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "binlane", *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_route_hashes_as_serve_does(scene: Scene, tmp_path: Path) -> None:
    logs = [str(path) for path in sorted(scene.source.data_directory.glob("binlog.0*"))]
    definitions = tmp_path / "defs.sql"
    definitions.write_text(
        "".join(
            f"CREATE BINLOG '{name}' {clauses.partition('FORMAT')[0]};\n"
            for name, clauses in BINLOGS.items()
        )
    )
    told = _printed("route", *logs, "--binlogs", str(definitions), "--out", str(tmp_path / "out"))
    told += _printed(
        "verify", str(tmp_path / "out"), "--binlogs", str(definitions), "--against", *logs
    )
    assert MARK not in told
    # What is missing of scopes are bodies that run texts, which they never hold.
    assert "CREATE USER" not in told.replace('EXECUTE IMMEDIATE "CREATE USER', "")
    routed = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*.000001")}
    assert len(routed) == len(BINLOGS)
    assert not [name for name, data in routed.items() if MARK.encode() in data]

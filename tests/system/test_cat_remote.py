"""`cat` of a server's log: the same as of its files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.cli import main
from binlane.live.provision.private_server import PrivateServer
from tests.servers import execute


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """A server with three files of log, of which two are closed, and an account."""
    directory = tmp_path_factory.mktemp("remote")
    options = ("--log-bin=binlog", "--server-id=1", "--binlog-format=ROW")
    with PrivateServer.start(directory, name="source", options=options) as running:
        execute(
            running,
            "CREATE USER reader@'%' IDENTIFIED BY 'open sesame'",
            "GRANT REPLICATION SLAVE ON *.* TO reader@'%'",
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (a INT PRIMARY KEY, b LONGTEXT)",
            "INSERT INTO shop.t VALUES (1, 'one'), (2, 'two')",
            "FLUSH BINARY LOGS",
            "INSERT INTO shop.t VALUES (3, REPEAT('three', 100000))",
            "FLUSH BINARY LOGS",
            "UPDATE shop.t SET b = 'four'",
        )
        yield running


def binlog(server: PrivateServer, number: int) -> Path:
    return server.directory / f"data/binlog.{number:06}"


def remote(server: PrivateServer, *arguments: str) -> list[str]:
    return [
        *("cat", "-R", f"--host={server.host}", f"--port={server.port}"),
        *("--user=reader", "-popen sesame", *arguments),
    ]


def output(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "form", [["--format=json", "-v"], ["-vv"], ["-j256"], ["--do-table=shop.t"]], ids=" ".join
)
def test_it_is_printed_as_from_files(
    form: list[str], server: PrivateServer, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [binlog(server, 1), binlog(server, 2)]
    expected = output(capsys, ["cat", *form, *map(str, files)])
    printed = output(capsys, remote(server, *form, *(file.name for file in files)))
    if form == ["-j256"]:
        # Where a dump does not begin with the file, its FORMAT_DESCRIPTION stands nowhere.
        expected, printed = (text[text.index("# at 256") :] for text in (expected, printed))
    assert printed == expected


def test_raw_files_are_the_servers(
    server: PrivateServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--raw", f"--result-file={tmp_path}/copy-", "binlog.000001", "binlog.000002"]
    assert output(capsys, remote(server, *arguments)) == ""
    for number in (1, 2):
        file = binlog(server, number)
        assert (tmp_path / f"copy-{file.name}").read_bytes() == file.read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_to_last_log_goes_through_all_files(
    server: PrivateServer, capsys: pytest.CaptureFixture[str]
) -> None:
    text = output(capsys, remote(server, "--to-last-log", "--format=json", "-v", "binlog.000001"))
    events = [json.loads(line) for line in text.splitlines()]
    assert {event["file"] for event in events} == {f"binlog.{number:06}" for number in (1, 2, 3)}
    assert [event["type"] for event in events if "row" in event] == ["insert"] * 3 + ["update"] * 3


def test_stop_never_waits_for_more(server: PrivateServer) -> None:
    arguments = remote(server, "--stop-never", "--format=json", "-v", "binlog.000003")
    with subprocess.Popen(
        [sys.executable, "-m", "binlane", *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            execute(server, "CREATE TABLE shop.late (a INT)", "INSERT INTO shop.late VALUES (77)")
            events = map(json.loads, process.stdout)
            found = next(
                event for event in events if event.get("table") == "late" and "row" in event
            )
        finally:
            process.kill()
    assert found["after"] == {"@1": 77}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["binlog.000099"], "Could not find first log file"),
        (["-pwrong", "binlog.000001"], "Access denied"),
        (["--ssl-mode=REQUIRED", "binlog.000001"], "the server offers no TLS"),
        (["--port=1", "binlog.000001"], "the server cannot be reached"),
    ],
)
def test_what_a_server_refuses_is_told(
    change: list[str], message: str, server: PrivateServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(remote(server, *change)) == 3
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_the_password_may_come_from_a_file_or_the_environment(
    server: PrivateServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")
    arguments = [a for a in remote(server, "binlog.000001") if not a.startswith("-p")]
    assert main(arguments) == 3
    assert main([*arguments, f"--password-file={secret}"]) == 0
    monkeypatch.setenv("MYSQL_PWD", "open sesame")
    assert main(arguments) == 0
    monkeypatch.setenv("MYSQL_PWD", "wrong")
    assert main(arguments) == 3
    capsys.readouterr()


def test_names_come_from_a_server(
    server: PrivateServer, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(binlog(server, 1))
    address = f"mariadb://root@{server.host}:{server.port}"
    text = output(capsys, ["cat", "--format=json", "-v", "--schema", address, log])
    rows = [event for event in map(json.loads, text.splitlines()) if "row" in event]
    assert [row["after"] for row in rows if row["database"] == "shop"] == [
        {"a": 1, "b": "one"},
        {"a": 2, "b": "two"},
    ]

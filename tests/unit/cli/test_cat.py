"""`binlane cat`: its options, alone and together, over real logs."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.cli import cat_fast, main
from binlane.cli.cat import command
from binlane.cli.cat_request import CatRequest
from binlane.log.kernels.load import compiled_module
from tests.fixture_sets import fixture_set


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of some sets."""
    root = tmp_path_factory.mktemp("logs")
    for name in ("md1011_gtid", "my97_gtid", "my97_compressed", "md1011_live_copy"):
        (root / name).mkdir()
        for file, data in fixture_set(name).binlogs:
            (root / name / file).write_bytes(data)
    for name in ("corrupt_mariadb1011", "corrupt_mysql97"):
        for file, data in fixture_set(name).files.items():
            (root / f"{name}.{file}").write_bytes(data)
    return root


@pytest.fixture
def log(folder: Path) -> str:
    return str(folder / "md1011_gtid/binlog.000001")


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    assert main(["cat", "--format=json", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def usage(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["cat", *arguments]) == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


TOOLS = (
    "base64-output",
    "bind-address",
    "binlog-row-event-max-size",
    "character-sets-dir",
    "compress",
    "compression-algorithms",
    "connection-server-id",
    "database",
    "debug",
    "debug-check",
    "debug-info",
    "default-auth",
    "defaults-extra-file",
    "defaults-file",
    "defaults-group-suffix",
    "disable-log-bin",
    "do-domain-ids",
    "do-server-ids",
    "exclude-gtids",
    "flashback",
    "force-if-open",
    "force-read",
    "get-server-public-key",
    "gtid-strict-mode",
    "help",
    "hexdump",
    "host",
    "idempotent",
    "ignore-domain-ids",
    "ignore-server-ids",
    "include-gtids",
    "local-load",
    "login-path",
    "no-defaults",
    "no-login-paths",
    "offset",
    "open-files-limit",
    "password",
    "plugin-dir",
    "port",
    "print-defaults",
    "print-row-count",
    "print-row-event-positions",
    "print-table-metadata",
    "protocol",
    "raw",
    "read-from-remote-master",
    "read-from-remote-server",
    "read-from-remote-source",
    "require-row-format",
    "result-file",
    "rewrite-db",
    "server-id",
    "server-id-bits",
    "server-public-key-path",
    "set-charset",
    "short-form",
    "skip-annotate-row-events",
    "skip-gtids",
    "socket",
    "ssl",
    "ssl-ca",
    "ssl-capath",
    "ssl-cert",
    "ssl-cipher",
    "ssl-crl",
    "ssl-crlpath",
    "ssl-fips-mode",
    "ssl-key",
    "ssl-mode",
    "ssl-session-data",
    "ssl-session-data-continue-on-failed-reuse",
    "ssl-verify-server-cert",
    "start-datetime",
    "start-position",
    "stop-datetime",
    "stop-never",
    "stop-never-slave-server-id",
    "stop-position",
    "table",
    "tls-ciphersuites",
    "tls-sni-servername",
    "tls-version",
    "to-last-log",
    "user",
    "verbose",
    "verify-binlog-checksum",
    "version",
    "zstd-compression-level",
)


@pytest.mark.parametrize("name", TOOLS)
def test_every_option_of_the_tools_is_known(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["cat", f"--{name}"])
    assert "No such option" not in capsys.readouterr().err


@pytest.mark.parametrize("letter", "?BCDFHPRSTVcdfhijloprstuv#")
def test_every_letter_of_the_tools_is_known(
    letter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["cat", f"-{letter}"])
    assert "No such option" not in capsys.readouterr().err


def test_help_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["cat", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.endswith(":") and not line.startswith(" ") for line in lines) > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plugin-dir=x", "f"], "loads no client plugins"),
        (["--do-server-ids=1", "--ignore-server-ids=2", "f"], "exclude each other"),
        (["--raw", "f"], "--raw needs --read-from-remote-server"),
        (["-R", "--raw", "--do-db=shop", "f"], "--raw writes files as they are"),
        (["-R", "--force", "f"], "--force is for files"),
        (["--html=x", "f"], "--html needs --summary"),
        (["--flashback", "--format=json", "f"], "has no --format=json"),
        (["--start-datetime=nonsense", "f"], "no date and time"),
        (["--start-position=0-1", "f"], "no MariaDB GTID"),
        (["--start-position=0-1-2,0-1-3", "f"], "names a domain twice"),
        (["-j", "0-1-9", "--stop-position=0-1-5", "f"], "comes before --start-position 0-1-9"),
        (["--include-gtids=x", "f"], "Invalid value for '--include-gtids'"),
        (["--do-server-ids=a", "f"], "no list of numbers"),
        (["--do-event=NOTHING", "f"], "there is no event type NOTHING"),
        (["--do-table=a.b.c", "f"], "no DATABASE.TABLE"),
        (["--rewrite-db=a", "f"], "is not FROM->TO"),
        (["--protocol=socket", "-R", "f"], "--protocol=socket needs --socket PATH"),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in usage(capsys, *arguments)


def positions(events: list[dict[str, object]]) -> list[object]:
    return [event["position"] for event in events]


def test_a_start_position_is_jumped_to(
    log: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = bytearray(Path(log).read_bytes())
    damaged[500] ^= 1
    copy = folder / "damaged.000001"
    copy.write_bytes(damaged)
    everything = positions(printed(capsys, log))
    expected = [everything[0], *everything[everything.index(829) :]]
    assert positions(printed(capsys, "--start-position=829", log)) == expected
    # What stands before is not read.
    assert positions(printed(capsys, "-j829", str(copy))) == expected


@pytest.fixture
def set_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Changes the local time zone, until the end of the test."""

    def change(zone: str) -> None:
        monkeypatch.setenv("TZ", zone)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("text", ["2026-11-20 15:02:15", "20261120150215", "2026/11/20 15:02:15"])
def test_times_are_local_unless_they_have_a_zone(
    text: str, log: str, capsys: pytest.CaptureFixture[str], set_zone: Callable[[str], None]
) -> None:
    everything = printed(capsys, log)
    # All of it was written within these seconds.
    assert min(int(str(event["timestamp"])) for event in everything) == 1795186935
    for zone, is_later in (("UTC", False), ("UTC-1", False), ("UTC+1", True)):
        set_zone(zone)
        assert printed(capsys, f"--stop-datetime={text}", log) == (everything if is_later else [])
        with_zone = "--stop-datetime=2026-11-20T15:02:15Z"
        assert printed(capsys, with_zone, log) == []
    assert positions(printed(capsys, f"--start-datetime={text}", log)) == [4]


def test_event_types(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    everything = printed(capsys, "-v", log)
    events = printed(capsys, "-v", "--do-event=xid,query", "--do-event=WRITE_ROWS_V1", log)
    wanted = {"XID", "QUERY", "WRITE_ROWS_V1", "insert"}
    assert events == [event for event in everything if event["type"] in wanted]


def test_tables_and_databases(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    everything = printed(capsys, "-v", log)
    only = printed(capsys, "-v", "--do-table=shop.my", log)
    assert {event["table"] for event in only if "table" in event} == {"my"}
    rest = printed(capsys, "-v", "--ignore-table=`shop`.`my`", log)
    assert {event["table"] for event in rest if "table" in event} == {"t"}
    gtids = {event["gtid"] for event in only} & {event["gtid"] for event in rest}
    assert gtids == {None}
    assert len(only) + len(rest) == len(everything) + sum(e["gtid"] is None for e in only)
    assert not any("table" in event for event in printed(capsys, "-v", "--ignore-db=shop", log))
    # As on replicas, databases to ignore are not asked where there are some to do.
    assert printed(capsys, "-v", "--do-db=shop", "--ignore-db=shop", log) == printed(
        capsys, "-v", "--do-db=shop", log
    )
    tools = printed(capsys, "-v", "--table=my", log)
    assert {event["table"] for event in tools if "table" in event} == {"my"}
    assert {event["gtid"] for event in tools} == {event["gtid"] for event in everything}


def test_events_inside_a_compressed_transaction_are_filtered(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(folder / "my97_compressed/binlog.000001")
    everything = printed(capsys, "-v", log)
    names = {(event["database"], event["table"]) for event in everything if "before" in event}
    assert names
    for database, table in names:
        only = printed(capsys, "-v", f"--do-table={database}.{table}", log)
        changes = [event for event in everything if event.get("table") == table and "row" in event]
        assert [event for event in only if "row" in event] == changes


def test_a_result_file_is_there_whole_or_not_at_all(
    log: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.sql"
    assert main(["cat", "-r", str(target), log]) == 0
    assert capsys.readouterr().out == ""
    main(["cat", log])
    text = target.read_text()
    assert text == capsys.readouterr().out
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~mask
    damaged = str(folder / "corrupt_mariadb1011.flip_body.bin")
    assert main(["cat", f"--result-file={target}", damaged]) == 1
    assert target.read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["out.sql"]
    assert main(["cat", "-r", str(tmp_path / "no/such/out"), log]) == 3
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_told(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cat", "-r", "/dev/full", log]) == 3
    error, hint = capsys.readouterr().err.splitlines()
    assert error == "binlane: the result cannot be written: No space left on device (/dev/full)"
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("name", ["corrupt_mariadb1011", "corrupt_mysql97"])
@pytest.mark.parametrize("form", ["json", "text"])
def test_force_goes_on_and_says_what_it_left_out(
    name: str, form: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(folder / f"{name}.flip_body.bin")
    assert main(["cat", f"--format={form}", path]) == 1
    before = capsys.readouterr()
    position = re.findall(r":(\d+)\)", before.err)[0]
    assert main(["cat", f"--format={form}", "--force", path]) == 1
    forced = capsys.readouterr()
    assert forced.out.startswith(before.out)
    assert len(forced.out) > len(before.out)
    pattern = rf"binlane: left out {re.escape(path)}:{position}–\d+ \(\d+ bytes\): checksum .*\n"  # noqa: RUF001  # a range
    assert re.fullmatch(pattern, forced.err)
    if form == "text":
        assert "\nROLLBACK" in forced.out[len(before.out) - 1 :]


def test_force_reads_standard_input(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "corrupt_mariadb1011.flip_body.bin"
    main(["cat", "--force", str(path)])
    expected = capsys.readouterr()
    stdin = SimpleNamespace(buffer=io.BytesIO(path.read_bytes()), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["cat", "--force", "-"]) == 1
    assert capsys.readouterr().out == expected.out


def test_damage_that_only_rows_show_is_passed_over(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(folder / "corrupt_mysql97.payload_broken.bin")
    assert main(["cat", "-v", "--format=json", "--force", path]) == 1
    captured = capsys.readouterr()
    assert "the payload is broken" in captured.err
    part = re.findall(r":(\d+)–(\d+) ", captured.err)  # noqa: RUF001  # a range
    start, end = map(int, part[0])
    events = [json.loads(line) for line in captured.out.splitlines()]
    assert not [event for event in events if start < event["position"] < end]
    assert [event for event in events if event["position"] >= end]


def test_a_file_that_was_not_closed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = bytearray((folder / "md1011_live_copy/binlog.000001").read_bytes())
    data[4 + 17] |= 1
    path = folder / "open.000001"
    path.write_bytes(data)
    assert main(["cat", str(path)]) == 0
    assert main(["cat", "--skip-force-if-open", str(path)]) == 1
    assert "the file was not closed" in capsys.readouterr().err


def test_a_stop_that_the_log_does_not_reach_is_noted(
    log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cat", "--stop-datetime=2100-01-01", log]) == 0
    assert capsys.readouterr().err == "binlane: the log ends before the stop that was asked for\n"
    assert main(["cat", "--stop-position=4094", log]) == 0
    assert capsys.readouterr().err == ""


def test_notes_are_few_and_can_be_silenced(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["cat", "--ignore-table=shop.t", "--do-table=shop.my", "--do-db=shop", log]
    assert main(arguments) == 0
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_a_summary(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["cat", "--summary", f"--html={page}", log]) == 0
    assert "shop.my" in capsys.readouterr().out
    assert page.read_text().lower().startswith("<!doctype html>")
    assert main(["cat", "--summary", "--format=json", "--do-table=shop.my", log]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert [table["table"] for table in json.loads(line)["tables"]] == ["my"]


def test_names_come_from_a_schema(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = str(folder / "md1011_gtid/binlog.000001")
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE DATABASE shop; USE shop; CREATE TABLE my (amount INT);")
    arguments = ("-v", "--do-table=shop.my", "--start-position=3399", log)
    plain = [event["after"] for event in printed(capsys, *arguments) if "row" in event]
    named = printed(capsys, "--schema", str(schema), *arguments)
    assert plain == [{"@1": 1}]
    assert [event["after"] for event in named if "row" in event] == [{"amount": 1}]


def test_a_reader_that_has_enough_is_no_failure(folder: Path) -> None:
    files = [str(folder / "md1011_gtid/binlog.000001")] * 30
    with subprocess.Popen(
        [sys.executable, "-m", "binlane", "cat", *files],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"/*!50530")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("name", "keys", "damaged_at"),
    [("md1011_encrypted", "keys.txt", 900), ("my97_encrypted", "keyring", 1500)],
)
def test_encrypted_logs(
    name: str,
    keys: str,
    damaged_at: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = fixture_set(name).files
    log, key_file = tmp_path / "binlog.000001", tmp_path / "keys"
    log.write_bytes(files[log.name])
    key_file.write_bytes(files[keys])
    assert main(["cat", str(log)]) == 1
    assert "--encryption-keys FILE" in capsys.readouterr().err
    option = f"--encryption-keys={key_file}"
    whole = printed(capsys, option, str(log))
    assert len(whole) == sum(row["file"] == log.name for row in fixture_set(name).events())
    last = max(i for i, event in enumerate(whole) if str(event["type"]).startswith("GTID"))
    part = printed(capsys, option, f"--start-position={whole[last]['position']}", str(log))
    assert part == [whole[0], *whole[last:]]
    damaged = bytearray(files[log.name])
    damaged[damaged_at] ^= 0x55
    log.write_bytes(damaged)
    assert main(["cat", option, "--format=json", "--force", str(log)]) == 1
    captured = capsys.readouterr()
    assert captured.err.count("left out") == 1
    left = [json.loads(line) for line in captured.out.splitlines()]
    assert 0 < len(whole) - len(left) < 8
    assert left[-1] == whole[-1]


@pytest.mark.parametrize("option", ["-vv", "--base64-output=decode-rows", "--disable-log-bin"])
def test_the_kernels_print_the_same(
    option: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if compiled_module("text") is None:
        pytest.skip("the kernels are not built")
    files = sorted(str(path) for path in (folder / "md1011_gtid").iterdir())
    assert main(["cat", option, *files]) == 0
    expected = capsys.readouterr().out
    monkeypatch.setattr(cat_fast, "_WORTH_BYTES", 1)
    assert cat_fast.is_worth_kernels(CatRequest.of((files[0],), _defaults()))
    assert main(["cat", option, *files]) == 0
    assert capsys.readouterr().out == expected


def _defaults() -> dict[str, Any]:
    context = command.make_context("cat", ["file"])
    return {name: value for name, value in context.params.items() if name != "files"}

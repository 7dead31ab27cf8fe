"""What options choose, and how they print it: the same as mariadb-binlog and mysqlbinlog."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from binlane.cli import main
from tests.fixture_sets import fixture_set
from tests.servers import of_mysql

OPTIONS = (
    "",
    "-vv",
    "--short-form",
    "--base64-output=decode-rows -v",
    "--print-table-metadata",
    "--skip-annotate-row-events",
    "--skip-print-row-count -v",
    "--skip-print-row-event-positions",
    "--disable-log-bin",
    "--set-charset=utf8mb4",
    "--start-position=829",
    "--start-position=829 --stop-position=367",
    "--start-position=829 --base64-output=decode-rows -v",
    "--start-position=829 --base64-output=never --short-form",
    "--stop-position=3881",
    "--stop-datetime='2000-01-01 00:00:00'",
    "--offset=7",
    "--server-id=77",
    "--ignore-server-ids=77",
    "--ignore-domain-ids=0",
    "--start-position=0-1-3 --stop-position=0-1-5",
    "--start-position=0-1-5,4-1-0",
    "--start-datetime='2000-01-01 00:00:00'",
    "--database=shop",
    "--database=nothing -vv",
    "--table=my -vv",
)
MYSQL_LOGS = ("my97_rows_query", "my97_xa", "my97_compressed", "my97_format_mixed")
MYSQL_OPTIONS = (
    "",
    "-vv",
    "-vv --base64-output=decode-rows",
    "--hexdump",
    "--skip-gtids",
    "--skip-gtids --base64-output=never --stop-position=127",
    "--stop-datetime='2000-01-01 00:00:00'",
    "--stop-datetime='2000-01-01 00:00:00' --idempotent",
)
# These stand in the text for what the tool left out.
_LEFT_OUT = re.compile(r"# at \d+|DELIMITER (;|/\*!\*/;)")
_OF_THE_LOG = re.compile(r"#.*\t(Rotate to|Binlog checkpoint|Stop)\b.*")
_FILTERS = re.compile(r"--(server-id|ignore|start-position=0|database|table)")


def essence(text: str, options: str) -> list[str]:
    """The lines to compare: all, unless something is filtered."""
    lines = text.splitlines()
    if not _FILTERS.search(options):
        return lines
    # Whether the tool prints events of the log itself depends on the group before them.
    return [
        line for line in lines if not (_LEFT_OUT.fullmatch(line) or _OF_THE_LOG.fullmatch(line))
    ]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_text_is_the_tools(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, data in fixture_set("md1011_gtid").binlogs:
        files.append(str(tmp_path / name))
        (tmp_path / name).write_bytes(data)
    arguments = [*shlex.split(options), *files]
    tool = subprocess.run(
        ["mariadb-binlog", "--no-defaults", *arguments], capture_output=True, check=True
    )
    assert main(["cat", "--no-defaults", *arguments]) == 0
    printed = capsys.readouterr().out
    assert essence(printed, options) == essence(tool.stdout.decode(), options)


@pytest.mark.parametrize("options", MYSQL_OPTIONS)
@pytest.mark.parametrize("name", MYSQL_LOGS)
def test_the_text_is_that_of_the_tool_of_mysql(name: str, options: str, tmp_path: Path) -> None:
    file, data = fixture_set(name).binlogs[0]
    (tmp_path / file).write_bytes(data)
    arguments = [*shlex.split(options), str(tmp_path / file)]
    tool = subprocess.run(
        [*of_mysql("mysqlbinlog"), "--no-defaults", *arguments], capture_output=True, check=True
    )
    # What is no UTF-8 is printed as it was.
    assert main(["cat", f"--result-file={tmp_path / 'text'}", *arguments]) == 0
    assert (tmp_path / "text").read_bytes().split(b"\n") == tool.stdout.split(b"\n")


def test_a_stop_position_at_the_end_is_reached(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, data = fixture_set("md1011_gtid").binlogs[0]
    (tmp_path / name).write_bytes(data)
    assert main(["cat", f"--stop-position={len(data)}", str(tmp_path / name)]) == 0
    assert not capsys.readouterr().err
    assert main(["cat", f"--stop-position={len(data) + 1}", str(tmp_path / name)]) == 0
    assert "the log ends before the stop" in capsys.readouterr().err

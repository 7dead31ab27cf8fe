"""What options choose, and how they print it: the same as mariadb-binlog."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from binlane.cli import main
from tests.fixture_sets import fixture_set

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
    "--stop-position=3881",
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
# These stand in the text for what the tool left out, or when it filters at all.
_LEFT_OUT = re.compile(
    r"# at \d+|/\*!100001 SET @@SESSION\.(SERVER_ID|GTID_DOMAIN_ID)=.*|"
    r"DELIMITER (;|/\*!\*/;)"
)
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

"""`binlane route --schema`: the foreign keys of tables that no file creates."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.binlogs.routing.cascades import CASCADED, MAPPED
from binlane.cli.main import main
from tests.routed_files import written

# Behind the tables, which all were made before.
_POSITION = 1736
_CHILD = "CREATE TABLE ch_n (id INT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES par (id){})"


def said(
    capsys: pytest.CaptureFixture[str], directory: Path, schema: str | None
) -> tuple[int, str]:
    paths = written("md1011_fk", directory / "in")
    definitions = directory / "defs.sql"
    definitions.write_text("CREATE BINLOG 'b' LOG(shop.ch_n);\n")
    options = []
    if schema is not None:
        (directory / "schema.sql").write_text(f"USE shop;\n{schema};\n")
        options = ["--schema", str(directory / "schema.sql")]
    arguments = ("--binlogs", str(definitions), "--out", str(directory / "out"), *options)
    status = main(["route", *paths, *arguments, "--start-position", str(_POSITION)])
    captured = capsys.readouterr()
    return status, captured.out + captured.err


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (None, {MAPPED: 2}),
        (_CHILD.format(" ON DELETE SET NULL"), {CASCADED: 1}),
        (_CHILD.format(""), {}),
    ],
)
def test_incidents_follow_from_what_is_known(
    schema: str | None, told: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = said(capsys, tmp_path, schema)
    assert status == 0
    assert {reason: text.count(reason) for reason in (CASCADED, MAPPED) if reason in text} == told


def test_a_schema_that_is_not_understood_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text = said(capsys, tmp_path, f"CREATE TABLE x (;\n{_CHILD.format('')}")
    assert status == 0
    assert "foreign keys that stand there are not known" in text
    # What is understood counts, and what else there may be is not guessed.
    assert CASCADED not in text
    assert MAPPED not in text

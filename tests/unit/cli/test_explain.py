from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlane.cli.main import main
from tests.fixture_sets import fixture_set
from tests.rules import ROOT


@pytest.fixture
def log(tmp_path: Path) -> Path:
    ((file, data),) = fixture_set("md1011_metadata_full").binlogs
    path = tmp_path / file
    path.write_bytes(data)
    return path


def test_an_event_is_printed_with_its_bytes(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(log), "4"]) == 0
    out = capsys.readouterr().out
    assert "FORMAT_DESCRIPTION, 252 bytes; the next event is at 256" in out
    assert "+19  04 00                    binlog_version = 4" in out
    assert "\x1b" not in out


def test_json_has_all_bytes(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(log), "256", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["type"], told["length"], told["faults"]) == ("GTID_LIST", 29, [])
    wire = "".join(field["hex"] for section in told["sections"] for field in section["fields"])
    assert bytes.fromhex(wire) == log.read_bytes()[256:285]


def test_a_position_inside_an_event(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(log), "300"]) == 2
    err = capsys.readouterr().err
    assert "300 is inside of BINLOG_CHECKPOINT, which begins at 285" in err
    assert "hint: " in err


def test_a_damaged_event_is_explained_with_status_1(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(log.read_bytes())
    data[300] ^= 1
    log.write_bytes(data)
    assert main(["explain", str(log), "285", "--quiet"]) == 1
    assert capsys.readouterr().out.startswith(f"{log}:285: the checksum is ")


def test_a_schema_names_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ((file, data),) = fixture_set("md1011_types_numeric").binlogs
    (tmp_path / file).write_bytes(data)
    schema = tmp_path / "schema.sql"
    schema.write_text(fixture_set("md1011_types_numeric").text("script.sql"))
    position = next(
        row["pos"]
        for row in fixture_set("md1011_types_numeric").events()
        if row["type"] == "Table_map"
    )
    arguments = ["explain", str(tmp_path / file), str(position)]
    assert main([*arguments, "--schema", str(schema)]) == 0
    named = capsys.readouterr().out
    assert main(arguments) == 0
    unnamed = capsys.readouterr().out
    assert "@1 = " in unnamed
    assert "@1 = " not in named


def test_an_encrypted_file_needs_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encrypted = fixture_set("my97_encrypted")
    file, data = encrypted.binlogs[0]
    (tmp_path / file).write_bytes(data)
    assert main(["explain", str(tmp_path / file), "4"]) == 1
    assert "--encryption-keys" in capsys.readouterr().err


def test_the_example_in_the_documentation(
    log: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/how-to/explain.md").read_text()
    command, printed = page.split("```console\n$ .venv/bin/binlane ")[1].split("\n", 1)
    monkeypatch.chdir(log.parent)
    assert main(command.split()) == 0
    assert capsys.readouterr().out == printed.split("```")[0]

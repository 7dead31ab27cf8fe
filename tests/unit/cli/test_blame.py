"""`blame` on recorded logs: each row's changes are those that the server's own tool prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlane.cli import main
from tests.fixture_sets import fixture_set


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("md1011_encrypted", "keys.txt"),
        ("my97_encrypted", "keyring"),
        ("md1011_compressed", None),
        ("my97_compressed", None),
        ("md1011_txn", None),
        ("my97_txn", None),
        ("md1011_group_commit", None),
    ],
)
def test_every_row_has_the_changes_of_the_log(
    name: str, keys: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = fixture_set(name)
    for file, data in recorded.binlogs:
        (tmp_path / file).write_bytes(data)
    options = []
    if keys is not None:
        path = tmp_path.with_name(f"{tmp_path.name}-{keys}")
        path.write_bytes(recorded.files[keys])
        options = [f"--encryption-keys={path}"]
    lives: dict[tuple[str, str], list[str]] = {}
    for row in recorded.rows():
        image = row["before"] or row["after"]
        key = image["1"].partition(" ")[0]
        if key.isdigit():
            lives.setdefault((f"{row['db']}.{row['table']}", key), []).append(row["op"])
    assert lives
    for (table, key), operations in list(lives.items())[:8]:
        arguments = ["--key", key, "--format=json", *options]
        status = main(["blame", table, str(tmp_path), *arguments])
        printed = capsys.readouterr()
        assert status == 0, printed.err
        objects = [json.loads(line) for line in printed.out.splitlines()]
        found = [each["type"][0].upper() for each in objects if "row" in each]
        assert found == operations, (table, key)
        assert objects[-1]["type"] == ("deleted" if operations[-1] == "D" else "now")


def test_a_log_without_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, data = fixture_set("md1011_metadata_full").binlogs[0]
    (tmp_path / name).write_bytes(data)
    assert main(["blame", "shop.nothing_like_it", str(tmp_path), "--key=1"]) == 1
    assert capsys.readouterr().err.startswith("binlane: the log has no rows of shop.nothing")


@pytest.mark.parametrize("table", ["orders", "a.b.c", ""])
def test_a_table_is_named_with_its_database(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["blame", table, str(tmp_path), "--key=1"]) == 2
    assert "is no DATABASE.TABLE" in capsys.readouterr().err

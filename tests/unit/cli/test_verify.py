from __future__ import annotations

from pathlib import Path

import pytest

from binlane.cli import main
from binlane.log.grouping.event_group import group_events
from binlane.log.grouping.walk import walk
from tests.fixture_sets import fixture_set


@pytest.fixture
def logs(tmp_path: Path) -> list[str]:
    paths = []
    for name, data in fixture_set("md1011_rotation").binlogs:
        (tmp_path / name).write_bytes(data)
        paths.append(str(tmp_path / name))
    return paths


def test_whole_files_have_no_faults(logs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *logs]) == 0
    assert capsys.readouterr() == ("", "no faults\n")
    assert main(["verify", "--quiet", *logs]) == 0
    assert capsys.readouterr() == ("", "")


def test_faults_are_lines_and_exit_1(logs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(logs[0])
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["verify", logs[0]]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"{path}:")
    assert ": the file ends inside " in out
    assert err == "1 fault found\n"


def test_people_are_told_how_much_was_looked_at(
    logs: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["verify", logs[0]]) == 0
    assert "no faults in 1 files with " in capsys.readouterr().err


@pytest.mark.parametrize("is_one", [True, False])
def test_against_takes_all_files_that_follow(
    logs: list[str], capsys: pytest.CaptureFixture[str], *, is_one: bool
) -> None:
    full = [f"--against={path}" for path in logs] if is_one else ["--against", *logs, "--quiet"]
    assert main(["verify", *logs, *full]) == 0
    # The last file of the scoped log is left out: its groups are in no binlog.
    assert main(["verify", *logs[:-1], *full]) == 1
    out = capsys.readouterr().out
    assert all("is in no binlog" in line for line in out.splitlines())


@pytest.mark.parametrize("arguments", [["x", "--against"], ["x", "--against", "-"], ["--against"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *arguments]) == 2
    assert "--against" in capsys.readouterr().err or arguments == ["--against"]


def test_definitions_say_what_may_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, data in fixture_set("md1011_ddl").binlogs:
        (tmp_path / name).write_bytes(data)
    full, definitions, out = str(tmp_path / "binlog.000001"), tmp_path / "d.sql", tmp_path / "out"
    definitions.write_text(
        "CREATE BINLOG 'orders' LOG(shop.t1, shop.t2); CREATE BINLOG 'analytics' IGNORE(crm);"
    )
    given = ["--binlogs", str(definitions)]
    assert main(["route", full, *given, "--out", str(out)]) == 0
    assert main(["verify", str(out), *given, "--against", full]) == 0
    assert main(["verify", str(out), "--against", full]) == 1
    definitions.write_text(
        "CREATE BINLOG 'orders' LOG(shop.t1); CREATE BINLOG 'analytics' IGNORE(crm);"
    )
    capsys.readouterr()
    assert main(["verify", str(out), *given, "--against", full]) == 1
    assert "is in binlog orders, out of its scope" in capsys.readouterr().out
    assert main(["verify", str(out), *given]) == 2


@pytest.mark.parametrize("name", ["md1011_txn", "my97_txn"])
def test_definitions_that_change_on_the_way_are_followed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files, gtids = [], list[str]()
    for file, data in fixture_set(name).binlogs:
        (tmp_path / file).write_bytes(data)
        files.append(str(tmp_path / file))
        groups = group_events(walk([data], file=file), file=file)
        gtids += [str(group.gtid) for group in groups if group.gtid]
    definitions, out = tmp_path / "d.sql", tmp_path / "out"
    first = "CREATE BINLOG 'some' LOG(shop.a); CREATE BINLOG 'rest' IGNORE(shop.a);\n"
    behind = "-- @at-gtid {}\nALTER BINLOG 'some' ADD LOG(shop.b); CREATE BINLOG 'new' LOG(crm);\n"
    definitions.write_text(first + behind.format(gtids[len(gtids) // 2]))
    given = ["--binlogs", str(definitions)]
    assert main(["route", *files, *given, "--out", str(out)]) == 0
    assert main(["verify", str(out), *given, "--against", *files]) == 0
    capsys.readouterr()
    definitions.write_text(first + behind.format(gtids[-1]))
    assert main(["verify", str(out), *given, "--against", *files]) == 1
    assert "is in binlog some, out of its scope" in capsys.readouterr().out
    definitions.write_text(first)
    later = tmp_path / "later.sql"
    later.write_text(behind.partition("\n")[2])
    changed = ["--at-gtid", gtids[len(gtids) // 2], str(later)]
    assert main(["verify", str(out), *given, *changed, "--against", *files]) == 0
    assert main(["verify", str(out), *changed, "--against", *files]) == 2

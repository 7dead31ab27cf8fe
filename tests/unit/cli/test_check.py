"""`binlane check` from its command line."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from binlane.cli.main import binlane, main
from tests.rules import ROOT

SCHEMA = """
CREATE DATABASE d;
USE d;
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(99)) ENGINE=InnoDB;
CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM;
"""
UNSAFE = "SET binlog_format = STATEMENT;\nINSERT INTO t VALUES (1, uuid());\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.sql").write_text(SCHEMA)
    (tmp_path / "safe.sql").write_text("INSERT INTO t VALUES (1, 'a');\n")
    (tmp_path / "unsafe.sql").write_text(UNSAFE)
    (tmp_path / "wrong.sql").write_text("INSERT INTO t VALUES (1, 'a');\nINSERT INTO (;\n")
    return tmp_path


def check(*arguments: str, server: str = "mariadb") -> int:
    return main(["check", "--server", server, "--schema", "schema.sql", *arguments])


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("safe.sql", 0),
        ("unsafe.sql", 1),
        ("wrong.sql", 2),
        ("unsafe.sql wrong.sql safe.sql", 2),
        ("unsafe.sql --allow unsafe", 0),
        ("unsafe.sql --allow unsafe-system-function", 0),
        ("unsafe.sql --allow unsafe --deny unsafe-system-function", 1),
        ("wrong.sql --allow all", 2),
        ("safe.sql --deny all", 0),
        ("unsafe.sql --allow nonsense", 2),
        ("safe.sql missing.sql", 3),
        ("safe.sql --quiet", 0),
    ],
)
@pytest.mark.parametrize("form", ["", "--json", "--sarif", "--github"])
@pytest.mark.usefixtures("folder")
def test_exit_status(arguments: str, status: int, form: str) -> None:
    assert check(*arguments.split(), *form.split()) == status


@pytest.mark.usefixtures("folder")
def test_json_tells_every_statement(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("unsafe.sql", "./safe.sql", "--json") == 1
    first, second, third = objects(capsys.readouterr().out)
    assert set(first) == {"script", "statement", "line", "sql", "error", "notes", "binlogs"}
    assert (first["script"], first["statement"], first["line"]) == ("unsafe.sql", 1, 1)
    assert first["binlogs"] == {"binlog": {"logged_as": "none", "events": []}}
    assert [note["reason"] for note in second["notes"]] == ["ER_BINLOG_UNSAFE_SYSTEM_FUNCTION"]
    assert second["binlogs"]["binlog"]["logged_as"] == "statement"
    assert second["binlogs"]["binlog"]["events"] == [
        ["Gtid", "BEGIN GTID #"],
        ["Query", "use `d`; INSERT INTO t VALUES (1, uuid())"],
        ["Xid", "COMMIT /* xid=# */"],
    ]
    assert (third["script"], third["statement"]) == ("./safe.sql", 1)


@pytest.mark.usefixtures("folder")
def test_scripts_do_not_know_of_each_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "a.sql").write_text("CREATE TABLE n (a INT); SET binlog_format = STATEMENT;")
    (folder / "b.sql").write_text("INSERT INTO t VALUES (1, uuid());\nINSERT INTO n VALUES (1);")
    assert check("a.sql", "b.sql", "--json") == 2
    *_, inserted, unknown = objects(capsys.readouterr().out)
    assert inserted["notes"] == []
    assert unknown["error"]["errno"] == 1146
    assert unknown["error"]["message"] == "Table 'd.n' doesn't exist"


@pytest.mark.usefixtures("folder")
def test_unknown_tables_can_be_assumed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.sql").write_text("INSERT INTO other.x SELECT a FROM y;")
    assert check("s.sql", "--assume-engine", "InnoDB", "--json") == 0
    (found,) = objects(capsys.readouterr().out)
    assert found["binlogs"]["binlog"]["logged_as"] == "statement"


@pytest.mark.usefixtures("folder")
def test_an_engine_that_nobody_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("safe.sql", "--assume-engine", "nonsense") == 2
    assert "(--assume-engine)" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_scripts_run_as_an_account_of_the_schema(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accounts = "CREATE USER app@localhost; GRANT SELECT ON d.t TO app@localhost;"
    (folder / "schema.sql").write_text(SCHEMA + accounts)
    (folder / "s.sql").write_text("USE d; SELECT a FROM t; DELETE FROM t;")
    assert check("s.sql") == 0
    capsys.readouterr()
    for name in ("app@localhost", "app"):
        assert check("s.sql", "--user", name, "--json") == 1
        *others, refused = objects(capsys.readouterr().out)
        assert [one["error"] for one in others] == [None, None]
        assert refused["error"]["errno"] == 1142
    assert check("s.sql", "--user", "root@localhost") == 0


@pytest.mark.usefixtures("folder")
def test_an_account_that_the_schema_has_not(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check("safe.sql", "--user", "app") == 2
    assert "give a schema with CREATE USER" in capsys.readouterr().err
    (folder / "schema.sql").write_text(SCHEMA + "CREATE USER app@a, app@b;")
    assert check("safe.sql", "--user", "app") == 2
    error = capsys.readouterr().err
    assert "(--user)" in error
    assert "app@a, app@b" in error


@pytest.mark.parametrize("sql", ["CALL nothing()", "DELETE FROM nothing"])
@pytest.mark.usefixtures("folder")
def test_what_the_schema_lacks_is_not_known(folder: Path, sql: str) -> None:
    (folder / "s.sql").write_text(f"{sql};")
    assert check("s.sql") == 2


@pytest.mark.usefixtures("folder")
def test_a_table_of_an_engine_that_is_not_known(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "schema.sql").write_text(SCHEMA + "CREATE TABLE n (a INT) ENGINE=Nonsense;")
    (folder / "s.sql").write_text("INSERT INTO n VALUES (1);")
    assert check("s.sql") == 2
    assert "binlane has a fault" not in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_the_text_names_and_underlines(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("unsafe.sql") == 1
    out = capsys.readouterr().out
    assert "    2 | INSERT INTO t VALUES (1, uuid())\n" in out
    assert re.search(r"^      \|                          \^~~~~~ ", out, re.MULTILINE)
    assert out.endswith("1 script, 2 statements: 1 unsafe\n")
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.usefixtures("folder")
def test_quiet_tells_only_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("safe.sql", "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert check("safe.sql", "wrong.sql", "--quiet") == 2
    assert capsys.readouterr().out.startswith("wrong.sql:2: ")


@pytest.mark.usefixtures("folder")
def test_a_script_that_cannot_be_read_stops_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wide.sql").write_bytes("DO 1;".encode("utf-16"))
    assert check("missing.sql", "wide.sql", "safe.sql", "--json") == 3
    told = capsys.readouterr()
    assert len(objects(told.out)) == 1
    assert "binlane: cannot be read: No such file or directory (missing.sql)" in told.err
    assert "UTF-16" in told.err


@pytest.mark.usefixtures("folder")
def test_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"DO 1;"))))
    assert check("-", "--json") == 0
    assert objects(capsys.readouterr().out)[0]["script"] == "-"


@pytest.mark.usefixtures("folder")
def test_sessions_within_a_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.sql").write_text(
        "SET binlog_format = STATEMENT;\nCREATE TEMPORARY TABLE tmp (a INT);\n"
        "-- @disconnect\nINSERT INTO t VALUES (1, uuid());\nSET binlog_format = STATEMENT;\n"
        "CREATE TEMPORARY TABLE tmp (a INT);\n-- @disconnect\n"
    )
    assert check("s.sql", "--json") == 0
    _, created, inserted, _, last = objects(capsys.readouterr().out)
    drop = "use `d`; DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `tmp`"
    for events in (inserted["binlogs"]["binlog"]["events"], last["binlogs"]["binlog"]["events"]):
        assert ["Query", drop] in events
    assert ["Query", drop] not in created["binlogs"]["binlog"]["events"]
    assert inserted["binlogs"]["binlog"]["events"][0] == ["Gtid", "GTID #"]
    assert inserted["notes"] == []


@pytest.mark.usefixtures("folder")
def test_a_schema_that_is_not_understood(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "schema.sql").write_text("CREATE DATABASE d; USE d;\n\nCREATE TABLE (a INT);\n")
    (folder / "s.sql").write_text("DO 1;")
    assert check("s.sql") == 2
    assert "(schema.sql:3)" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_definitions_that_are_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "defs.sql").write_text("CREATE BINLOG 'a';\nCREATE BINLOG 'a';\n")
    assert check("--binlogs", "defs.sql", "safe.sql") == 2
    assert "(defs.sql:2)" in capsys.readouterr().err
    (folder / "defs.sql").write_text("SELECT 1;\n")
    assert check("--binlogs", "defs.sql", "safe.sql") == 2
    assert "defines no binlog" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_definitions_that_name_a_view(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "schema.sql").write_text(SCHEMA + "CREATE VIEW v AS SELECT * FROM t;")
    (folder / "defs.sql").write_text("CREATE BINLOG 'a' LOG(d.v);\n")
    assert check("--binlogs", "defs.sql", "safe.sql") == 2
    assert "`d`.`v` is a view" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_text_that_is_not_utf_8_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.sql").write_bytes(b"INSERT INTO t VALUES (1, '\xe4');")
    assert check("s.sql", "--json") == 0
    (found,) = objects(capsys.readouterr().out)
    assert found["sql"].encode("utf-8", "surrogateescape").endswith(b"'\xe4')")


@pytest.mark.rule("000:partial-write")
@pytest.mark.usefixtures("folder")
def test_a_refusal_of_a_scope(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "defs.sql").write_text("CREATE BINLOG 'binny' LOG(`d`.`t`);\nCREATE BINLOG 'all';\n")
    (folder / "s.sql").write_text("DROP TABLE d.t, d.m;")
    assert check("--binlogs", "defs.sql", "s.sql") == 1
    out = capsys.readouterr().out
    assert "  binny: refused\n" in out
    assert "[partial-write]: [11314] This statement cannot be replicated safely" in out
    assert "hint: " in out


@pytest.mark.parametrize(
    "script",
    [
        b"INSERT INTO t VALUES (1, '\xff\xfe');",
        b"INSERT INTO t VALUES (1, 'no end",
        b"INSERT INTO t /* no end",
        b"\x00\x01\x02",
        b"SELECT " + b"(" * 10_000 + b"1" + b")" * 10_000 + b";",
        b"INSERT INTO t VALUES (1, (" + b"SELECT (" * 3_000,
        b"BEGIN NOT ATOMIC " * 2_000,
        b"source x.sql",
        b"-- @rows many\nDO 1;",
    ],
    ids=range(9),
)
@pytest.mark.parametrize("server", ["mariadb", "mysql"])
@pytest.mark.usefixtures("folder")
def test_bad_input_is_no_crash(
    folder: Path, server: str, script: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "s.sql").write_bytes(script)
    status = check("s.sql", "--json", server=server)
    found = objects(capsys.readouterr().out)
    if b"\xff" in script:
        assert status == 0
    elif not script.startswith(b"SELECT ("):
        assert status == 2
        assert "unanalysed" in found[0]


@pytest.mark.usefixtures("folder")
def test_the_server_and_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert check("safe.sql", server="oracle") == 2
    assert "mariadb or mysql" in capsys.readouterr().err
    assert check("safe.sql", "--json", server="mysql:8.0") == 0
    (found,) = objects(capsys.readouterr().out)
    assert found["binlogs"]["binlog"]["events"][0] == ["Query", "BEGIN"]


def test_the_page_shows_what_comes_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/how-to/check-scripts.md").read_text()
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r'```sql title="(.+?)"\n(.*?)```', page, re.DOTALL):
        (tmp_path / name).write_text(text)
    (shown,) = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    command, _, expected = shown.partition("\n")
    assert main(command.removeprefix("$ .venv/bin/binlane ").split()) == 1
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--deny unsafe-sy", ["unsafe-system-table", "unsafe-system-variable"]),
        ("--server my", ["mysql", "mysql:5.7", "mysql:8.0", "mysql:8.4", "mysql:9.7"]),
    ],
)
def test_completion(words: str, expected: list[str]) -> None:
    *before, incomplete = words.split()
    completion = ShellComplete(binlane, {}, "binlane", "_BINLANE_COMPLETE")
    found = [item.value for item in completion.get_completions(["check", *before], incomplete)]
    assert set(expected) <= set(found)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("script", ["safe.sql", "empty.sql"])
def test_a_full_disk_is_told(folder: Path, script: str) -> None:
    (folder / "empty.sql").write_text("")
    command = [sys.executable, "-m", "binlane", "check", "--server", "mysql"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "--schema", "schema.sql", script],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("binlane: the result cannot be written: No space left on device")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        (f"{SCHEMA}CREAT TABLE x (a INT);", 6),
        (f"{SCHEMA}\n/* open CREATE TABLE x (a INT);", 7),
        (f"{SCHEMA}ALTER TABLE t FROBNICATE a;", 6),
        (f"{SCHEMA}CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW FROBNICATE;", 6),
    ],
)
def test_where_a_schema_is_not_understood(
    folder: Path, capsys: pytest.CaptureFixture[str], schema: str, line: int
) -> None:
    (folder / "schema.sql").write_text(schema)
    assert check("safe.sql") == 2
    assert f"(schema.sql:{line})" in capsys.readouterr().err


def test_a_dump_with_rows_is_understood(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = """
    /*!40101 SET NAMES utf8mb4 */;
    LOCK TABLES `t` WRITE;
    /*!40000 ALTER TABLE `t` DISABLE KEYS */;
    INSERT INTO `t` VALUES (1,'a');
    UNLOCK TABLES;
    -- the end
    """
    (folder / "schema.sql").write_text(SCHEMA + rows)
    assert check("safe.sql") == 0
    assert capsys.readouterr().err == ""


DUMP = """-- MariaDB dump 10.19  Distrib 10.11.6-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: d
-- ------------------------------------------------------
-- Server version\t{}

/*!40101 SET NAMES utf8mb4 */;
CREATE DATABASE `d`;
USE `d`;
DROP TABLE IF EXISTS `t`;
CREATE TABLE `t` (`a` int(11) NOT NULL, PRIMARY KEY (`a`)) ENGINE=InnoDB;
"""


@pytest.mark.parametrize(
    ("version", "logged_as"),
    [("10.11.6-MariaDB-0+deb12u1", "statement"), ("8.0.36", "row"), ("8.4.3-0ubuntu1", "row")],
)
def test_a_dump_tells_its_server(
    version: str, logged_as: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "dump.sql").write_text(DUMP.format(version))
    (folder / "s.sql").write_text("DELETE FROM t;")
    assert main(["check", "--schema", "dump.sql", "--json", "s.sql"]) == 0
    (told,) = objects(capsys.readouterr().out)
    assert told["binlogs"]["binlog"]["logged_as"] == logged_as
    # The option weighs more.
    assert main(["check", "--server", "mysql", "--schema", "dump.sql", "--json", "s.sql"]) == 0
    (told,) = objects(capsys.readouterr().out)
    assert told["binlogs"]["binlog"]["logged_as"] == "row"


def test_nothing_tells_the_server(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--schema", "schema.sql", "safe.sql"]) == 2
    assert "it is not known which server runs the script" in capsys.readouterr().err
    for name, version in (("one.sql", "10.11.6-MariaDB"), ("two.sql", "8.0.36")):
        (folder / name).write_text(DUMP.format(version))
    assert main(["check", "--schema", "one.sql", "--schema", "two.sql", "safe.sql"]) == 2
    told = capsys.readouterr().err
    assert "one.sql of mariadb 10.11.6, two.sql of mysql 8.0.36" in told


def test_several_files_of_the_schema(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "more.sql").write_text("CREATE TABLE more (a INT);\nCREATE TABLE wrong (a INT, a(;\n")
    (folder / "s.sql").write_text("DELETE FROM more; DELETE FROM t;")
    assert check("--schema", "more.sql", "--json", "s.sql") == 2
    captured = capsys.readouterr()
    assert [one["error"] for one in objects(captured.out)] == [None, None]
    assert "(more.sql:2)" in captured.err


@pytest.mark.usefixtures("folder")
def test_a_server_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--schema", "mariadb://root@127.0.0.1:1", "safe.sql"]) == 3
    assert "127.0.0.1:1" in capsys.readouterr().err


def test_scripts_that_a_script_reads(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/main.sql").write_text("source inner.sql\nDELETE FROM t;\n\\. missing.sql\n")
    (folder / "sub/inner.sql").write_text("\nDELETE FROM m;")
    assert check("--json", "sub/main.sql") == 2
    told = objects(capsys.readouterr().out)
    assert [(one["script"], one["statement"], one["line"]) for one in told] == [
        ("sub/inner.sql", 1, 2),
        ("sub/main.sql", 2, 2),
        ("sub/main.sql", 3, 3),
    ]
    assert "sub/missing.sql" in told[2]["unanalysed"]["reason"]


def test_every_reason_is_in_every_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "defs.sql").write_text(
        "CREATE BINLOG a FORMAT='STATEMENT' LOG(d.t); CREATE BINLOG b FORMAT='STATEMENT' LOG(d.m);"
    )
    (folder / "more.sql").write_text("CREATE TABLE o (a INT); CREATE TABLE p (a INT);")
    (folder / "s.sql").write_text(
        "DELETE FROM t WHERE a IN (SELECT a FROM o) OR a IN (SELECT a FROM p);"
    )
    options = ("--schema", "more.sql", "--binlogs", "defs.sql", "s.sql")
    assert check(*options, "--json") == 1
    (told,) = objects(capsys.readouterr().out)
    messages = [told["error"]["message"], *(one["message"] for one in told["more_errors"])]
    assert len(messages) == len(set(messages)) > 1
    for form in ("--sarif", "--github", "--explain"):
        assert check(*options, form) == 1
        out = "".join(capsys.readouterr().out.split())
        # GitHub's escapes and the wrapping of lines apart, each text is there.
        for message in messages:
            assert message.replace("%", "%25").replace(" ", "") in out


@pytest.mark.parametrize(("value", "status"), [("0", 2), ("1", 0), ("2", 0)])
def test_names_without_case(value: str, status: int, folder: Path) -> None:
    (folder / "s.sql").write_text("DELETE FROM T; DELETE FROM D.M;")
    assert check("--lower-case-table-names", value, "--quiet", "s.sql") == status

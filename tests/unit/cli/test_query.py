from __future__ import annotations

import csv
import io
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from binlane.cli import main
from tests.fixture_sets import fixture_set

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def log(tmp_path: Path) -> str:
    return log_of("md1011_txn", tmp_path)


def log_of(name: str, folder: Path) -> str:
    ((file, data),) = fixture_set(name).binlogs
    path = folder / file
    path.write_bytes(data)
    return str(path)


def query(capsys: Captured, *arguments: str) -> str:
    assert main(["query", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_a_table_has_names_a_line_and_a_count(log: str, capsys: Captured) -> None:
    out = query(capsys, "SELECT 1 AS a, 'x' AS long_name UNION ALL SELECT 22, NULL", log)
    assert out.splitlines() == [
        "a  | long_name",
        "---+----------",
        " 1 | x",
        "22 | NULL",
        "(2 rows)",
    ]
    assert query(capsys, "SELECT 1 AS a WHERE false", log) == "a\n-\n(0 rows)\n"


def test_a_table_shows_no_character_that_moves_a_terminal(log: str, capsys: Captured) -> None:
    out = query(capsys, "SELECT 'a' || chr(27) || '[2J' || chr(10) AS t", log)
    assert "\\x1b[2J\\n" in out
    assert "\x1b" not in out


def test_a_plan_stands_in_lines_and_shows_what_reaches_the_log(log: str, capsys: Captured) -> None:
    sql = "EXPLAIN SELECT id FROM shop.a WHERE _timestamp >= '2026-01-01' AND id > 3"
    lines = query(capsys, sql, log).splitlines()
    assert any("PYTHON_ARROW_SCAN" in line for line in lines)
    assert any('"_timestamp" >=' in line for line in lines)
    assert "\\n" not in "".join(lines)


def test_csv_is_read_back(log: str, capsys: Captured) -> None:
    sql = "SELECT 'a,\"b' AS \"x,y\", NULL AS n, '' AS e, [1, 2] AS l, 1.50::DECIMAL(5, 2) AS d"
    out = query(capsys, sql, log, "--format", "csv")
    assert list(csv.reader(io.StringIO(out))) == [
        ["x,y", "n", "e", "l", "d"],
        ['a,"b', "", "", "[1, 2]", "1.50"],
    ]
    assert ',,"",' in out


def test_json_is_read_back(log: str, capsys: Captured) -> None:
    sql = (
        "SELECT 1 AS a, 2 AS a, 'ä\"' AS t, NULL AS n, {'p': [1]} AS s, 'NaN'::DOUBLE AS f, "
        "9223372036854775807 AS big FROM range(2)"
    )
    row = {"a": 1, "a_1": 2, "t": 'ä"', "n": None, "s": {"p": [1]}, "f": "NaN", "big": 2**63 - 1}
    lines = query(capsys, sql, log, "--format", "jsonl").splitlines()
    assert list(map(json.loads, lines)) == [row, row]
    assert json.loads(query(capsys, sql, log, "--format", "json")) == [row, row]
    assert json.loads(query(capsys, "SELECT 1 WHERE false", log, "--format", "json")) == []


def test_parquet_is_a_file_of_one_result(log: str, tmp_path: Path, capsys: Captured) -> None:
    out = tmp_path / "out.parquet"
    sql = "CREATE TABLE t AS FROM shop.a; SELECT id, _before.v AS old FROM t"
    assert query(capsys, sql, log, "--format", "parquet", "--output", str(out)) == ""
    table = pq.read_table(out)
    assert (table.column_names, table.num_rows) == (["id", "old"], 12)
    for wrong in (
        ["SELECT 1", log, "--format", "parquet"],
        ["SELECT 1; SELECT 2", log, "--format", "parquet", "--output", str(out)],
        ["SET threads = 1", log, "--format", "parquet", "--output", str(out)],
    ):
        assert main(["query", *wrong]) == 2
    assert main(["query", "SELECT 1", log, "--format", "parquet", "-o", f"{tmp_path}/no/x"]) == 3
    assert "name another --output" in capsys.readouterr().err


def test_results_go_to_a_file_whole_or_not_at_all(
    log: str, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "out.csv"
    query(capsys, "SELECT 1 AS a", log, "--format", "csv", "-o", str(out))
    assert out.read_text() == "a\n1\n"
    assert main(["query", "SELECT 2 AS a; SELECT nix", log, "-o", str(out)]) == 2
    assert out.read_text() == "a\n1\n"
    assert main(["query", "SELECT 2 AS a", log, "-o", str(tmp_path / "no/out.csv")]) == 3
    assert "hint: name another file" in capsys.readouterr().err


def test_statements_of_a_file_share_a_session(log: str, tmp_path: Path, capsys: Captured) -> None:
    script = tmp_path / "script.sql"
    script.write_text("-- one; two\nCREATE MACRO twice(x) AS 2 * x;\nSELECT twice(21) AS n;\n")
    assert query(capsys, "-f", str(script), log, "--format", "csv") == "n\n42\n"


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("PIVOT (SELECT 1 AS k, _op FROM shop.a) ON _op USING count(*)", "k,insert\n1,12\n"),
        ("PREPARE p AS SELECT ? + 1 AS n; EXECUTE p(41)", "n\n42\n"),
        ("CREATE TABLE t AS SELECT 1 AS a; INSERT INTO t VALUES (2) RETURNING a", "a\n2\n"),
        ("CREATE TABLE t AS SELECT 1 AS a; DELETE FROM t WHERE a = 2 RETURNING a", "a\n"),
        ("SET threads = 1; BEGIN; CREATE TABLE t AS SELECT 1 AS a; COMMIT; USE shop", ""),
    ],
)
def test_all_rows_that_a_statement_gives_are_shown(
    sql: str, rows: str, log: str, capsys: Captured
) -> None:
    assert query(capsys, sql, log, "--format", "csv") == rows


def test_sql_comes_from_a_pipe(log: str, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT count(*) AS n FROM shop.a"))
    assert query(capsys, log, "--format", "csv") == "n\n12\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1 AS n;"))
    assert query(capsys, "-f", "-", log, "--format", "csv") == "n\n1\n"


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELEC 1", ["Parser Error", "LINE 1: SELEC 1"]),
        ("SELECT nix FROM shop.a", ["Binder Error", "nix"]),
        (
            "SELECT * FROM shop.nix",
            ["Catalog Error", "hint: SELECT schema, name FROM (SHOW ALL TABLES) lists"],
        ),
        ("SELECT 'x'::INT", ["Conversion Error"]),
        ("SELECT sin('x'::BLOB)", ["\n    sin(x DOUBLE) -> DOUBLE\n"]),
        ("COPY (SELECT 1) TO 'x.csv'", ["Permission Error", "hint: --allow-files"]),
        ("FROM read_csv('/etc/passwd')", ["Permission Error"]),
        ("ATTACH 'x.db'", ["Permission Error"]),
        ("SET enable_external_access = true", ["Cannot"]),
        ("FROM options", ["Catalog Error"]),
    ],
)
def test_what_duckdb_refuses_is_told_in_its_words(
    sql: str, told: list[str], log: str, capsys: Captured
) -> None:
    assert main(["query", sql, log]) == 2
    err = capsys.readouterr().err
    assert err.startswith("binlane: ")
    assert [text for text in told if text not in err] == []


def test_files_are_reached_where_that_is_allowed(
    log: str, tmp_path: Path, capsys: Captured
) -> None:
    out = tmp_path / "x.csv"
    query(capsys, "--allow-files", f"COPY (SELECT 1 AS a) TO '{out}'", log)
    assert out.read_text() == "a\n1\n"


def test_damage_is_told_with_its_place_and_status_1(log: str, capsys: Captured) -> None:
    path = Path(log)
    data = bytearray(path.read_bytes())
    position = next(row["pos"] for row in fixture_set("md1011_txn").events() if row["pos"] > 5000)
    data[position + 20] ^= 0x40
    path.write_bytes(data)
    for table in ("events", "shop.b", "shop.a"):
        assert main(["query", f"SELECT count(*) FROM {table}", log]) == 1
        err = capsys.readouterr().err
        assert f"({log}:{position})" in err
        assert "DuckDB" not in err
    until = f"binlog.000001:{position}"
    assert main(["query", "SELECT count(*) FROM shop.b", log, "--stop-position", until]) == 0


def test_arguments_that_cannot_be_used(log: str, tmp_path: Path, capsys: Captured) -> None:
    missing = str(tmp_path / "binlog.000009")
    assert main(["query", "SELECT 1"]) == 2
    assert "name a log behind the SQL" in capsys.readouterr().err
    assert main(["query", "SELECT 1", missing]) == 3
    assert main(["query", "SELECT 1", log, "--start-position", "nowhere"]) == 2
    assert main(["query", "SELECT 1", log, "--tables", "a.b.c"]) == 2
    capsys.readouterr()
    no_file = str(tmp_path / "no.sql")
    assert main(["query", "-f", no_file, log]) == 3
    assert f"cannot be read: No such file or directory ({no_file})" in capsys.readouterr().err
    bounds = ["--stop-position", "binlog.000001:4", "--stop-datetime", "2026-01-01"]
    assert main(["query", "SELECT 1", log, *bounds]) == 2
    assert "not both" in capsys.readouterr().err


def test_options_bound_what_there_is(log: str, capsys: Captured) -> None:
    listed = "SELECT DISTINCT schema || '.' || name AS t FROM (SHOW ALL TABLES) ORDER BY t"
    out = query(capsys, listed, log, "--format", "csv", "--tables", "shop.b")
    assert out.split() == ["t", "main.events", "main.groups", "main.statements", "shop.b"]
    counted = "SELECT count(*) AS n FROM groups"
    start = query(capsys, counted, log, "--format", "csv", "--start-position", "0-1-9")
    stop = query(capsys, counted, log, "--format", "csv", "--stop-position", "0-1-9")
    whole = query(capsys, counted, log, "--format", "csv")
    numbers = [int(text.split()[1]) for text in (start, stop, whole)]
    assert numbers[0] + numbers[1] == numbers[2]
    late = ["--start-datetime", "2027-01-01T00:00:00Z"]
    assert query(capsys, counted, log, "--format", "csv", *late) == "n\n0\n"


def test_a_schema_names_columns(tmp_path: Path, capsys: Captured) -> None:
    log = log_of("md1011_metadata_no_log", tmp_path)
    sql = "SELECT DISTINCT column_name FROM duckdb_columns() WHERE table_name = '{}'"
    tables = query(
        capsys, "SELECT name FROM (SHOW ALL TABLES) WHERE schema <> 'main'", log, "--format", "csv"
    ).split()[1:]
    names = query(capsys, sql.format(tables[0]), log, "--format", "csv").split()
    assert {"_op", "_before", "_statement"} < set(names)


def test_without_duckdb_the_error_says_how_to_install_it(log: str) -> None:
    program = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from binlane.cli import main; sys.exit(main(['query', 'SELECT 1', sys.argv[1]]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, log], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "duckdb is not installed" in done.stderr
    assert "hint: pip install 'binlane[query]'" in done.stderr


class Prompt:
    """`binlane query` at a terminal."""

    def __init__(self, log: str, state: Path) -> None:
        self.master, slave = pty.openpty()
        environment = os.environ | {"XDG_STATE_HOME": str(state), "TERM": "dumb"}
        # A shell has what it runs in the background ignore the signal, and children with it.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "binlane", "query", log],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=environment,
            start_new_session=True,
        )
        signal.signal(signal.SIGINT, before)
        os.close(slave)
        self.shown = ""

    def until(self, text: str, *, timeout_s: float = 60) -> str:
        """Read until a text is there; return all that came."""
        end = time.monotonic() + timeout_s
        while text not in self.shown:
            assert time.monotonic() < end, f"{text!r} does not come: {self.shown!r}"
            if select.select([self.master], [], [], 1)[0]:
                try:
                    self.shown += os.read(self.master, 1 << 16).decode()
                except OSError:
                    break
        shown, self.shown = self.shown, ""
        return shown

    def interrupt(self) -> None:
        """Interrupt, again where Python was just about to wait and did not see the signal."""
        end = time.monotonic() + 60
        while "binlane> " not in self.shown:
            assert time.monotonic() < end, f"no prompt comes: {self.shown!r}"
            self.process.send_signal(signal.SIGINT)
            if select.select([self.master], [], [], 1)[0]:
                self.shown += os.read(self.master, 1 << 16).decode()
        self.shown = ""

    def leave(self) -> None:
        """Leave, again where a signal that was seen late took the line away."""
        for _ in range(12):
            self.type("\\q\n")
            with suppress(subprocess.TimeoutExpired):
                assert self.process.wait(5) == 0
                return
        pytest.fail("the prompt does not end")

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())


def test_at_a_terminal_there_is_a_prompt(log: str, tmp_path: Path) -> None:
    state = tmp_path / "state"
    prompt = Prompt(log, state)
    assert "2 tables with changes" in prompt.until("binlane> ")
    prompt.type("SELECT count(*)\n")
    prompt.until("-> ")
    prompt.type("FROM shop.a;\n")
    assert "12" in prompt.until("binlane> ")
    prompt.type("\\d\n")
    listed = prompt.until("binlane> ")
    assert "shop" in listed
    assert "(5 rows)" in listed
    prompt.type("\\d shop.b\n")
    assert "_before" in prompt.until("binlane> ")
    prompt.type("SELECT nix;\n")
    assert "Binder Error" in prompt.until("binlane> ")
    prompt.type("\\x\n")
    assert "\\? lists them" in prompt.until("binlane> ")
    prompt.type("help\n")
    assert "leave, as Ctrl-D does" in prompt.until("binlane> ")
    prompt.type("SELECT")
    prompt.until("SELECT")
    prompt.interrupt()
    prompt.leave()
    history = (state / "binlane/query_history").read_text()
    assert "FROM shop.a;" in history


def test_whoever_interrupts_twice_stays_at_the_prompt(log: str, tmp_path: Path) -> None:
    prompt = Prompt(log, tmp_path / "state")
    prompt.until("binlane> ")
    for number in range(60):
        prompt.process.send_signal(signal.SIGINT)
        # When what the first one does is under way, at another step each time.
        time.sleep(number * 2e-6)
        prompt.interrupt()
    prompt.leave()


@pytest.mark.parametrize(
    "endless",
    [
        "SELECT count(*) FROM range(1000000000000) WHERE random() < 0",
        "CREATE TABLE t AS SELECT 1 FROM range(1000000000000) WHERE random() < 0",
        "FROM range(1000000000000)",
    ],
)
def test_a_query_that_runs_is_interrupted(endless: str, log: str, tmp_path: Path) -> None:
    prompt = Prompt(log, tmp_path / "state")
    try:
        prompt.until("binlane> ")
        prompt.type(f"SELECT 'be' || 'gun' AS a; {endless};\n")
        prompt.until("begun")
        prompt.process.send_signal(signal.SIGINT)
        shown = prompt.until("binlane> ")
        assert "interrupted\r\n" in shown
        assert "fault" not in shown[-200:]
        prompt.type("SELECT 'still ' || 'there' AS a;\n")
        prompt.until("still there")
        prompt.leave()
    finally:
        prompt.process.kill()

"""Every example of seed 000, typed by an ordinary client into the port: the same answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pymysql
import pytest

from tests.judged_port import judged
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess
from tests.servers import execute
from tests.transcripts import Step, Transcript, transcripts
from tests.typed import TypedClient

_LOG_ID: Final = "6057996416246436865"
_SYSTEM: Final = ("information_schema", "mysql", "performance_schema", "sys", "binlane", "system")
_TIME: Final = re.compile(r" \(\d+\.\d+ sec\)$")
_OPENINGS: Final = ("BEGIN", "COMMIT", "ROLLBACK")


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    directory = tmp_path_factory.mktemp("seed")
    with (
        LENT.lend_source("mariadb") as source,
        judged(directory / "serve", source) as process,
    ):
        numbers = source.directory / "files" / "numbers.txt"
        numbers.write_text("1\n2\n3\n", encoding="utf-8")
        numbers.chmod(0o644)
        yield process


@pytest.mark.parametrize("transcript", transcripts("seed_000"), ids=lambda one: one.name)
def test_the_port_answers_as_the_seed_shows(serve: ServeProcess, transcript: Transcript) -> None:
    _empty(serve)
    logs = _Logs(serve)
    with TypedClient(serve.port) as client:
        for step in transcript.steps:
            logs.skip()
            text = step.text.replace("FILES", str(serve.source.directory / "files"))
            answer = client.type(text.replace(_LOG_ID, str(logs.log_id or _LOG_ID)))
            _check_answer(step, answer, logs.log_id)
            _check_logs(step, logs.appended())
    assert "Traceback" not in serve.log


def _check_answer(step: Step, answer: list[str], log_id: int | None) -> None:
    is_error = any(line.startswith("ERROR") for line in answer)
    if step.answer == ["ERROR *"]:
        assert is_error, step.text
    elif step.answer:
        given = [_comparable(line, log_id) for line in answer]
        expected = [_comparable(line, log_id) for line in step.answer]
        expected = [line for line in expected if line]
        # Below `Query OK` the client shows what binlane says of a definition.
        given = [line for line in given if line][
            : len(expected) if step.answer[0].startswith("Query OK") else None
        ]
        assert given == expected, step.text
    else:
        assert not is_error, (step.text, answer)


def _comparable(line: str, log_id: int | None) -> str:
    """A line without the time it took, the width of tables and which id a log has."""
    line = _TIME.sub("", line.partition(" (hint")[0])
    if line.startswith("+-"):
        return ""
    if line.startswith("|"):
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        return "|".join("ID" if cell in {_LOG_ID, str(log_id)} else cell for cell in cells)
    return line


def _check_logs(step: Step, appended: Mapping[str, list[str]]) -> None:
    if step.logged is not None:
        assert [name for name, texts in appended.items() if texts] == step.logged, step.text
    for name, texts in step.appended.items():
        assert appended[name] == texts, step.text


class _Logs:
    """What binlogs got, statement by statement."""

    def __init__(self, serve: ServeProcess) -> None:
        self._serve = serve
        self._places: dict[str, tuple[str, int]] = {}
        self.log_id: int | None = None

    def skip(self) -> None:
        """Pass over what is there."""
        rows = self._serve.execute_as_root("SHOW MASTER STATUS", "SHOW BINLOGS")
        self._places = {row[0]: (row[1], int(row[2])) for row in rows}
        found = self._serve.execute_as_root("SELECT log_id FROM system.binlogs")
        self.log_id = found[0][0] if found else None

    def appended(self) -> dict[str, list[str]]:
        """By binlog the statements that it got since, `rows` for rows, each once in a row."""
        found: dict[str, list[str]] = {}
        for name, (file, position) in self._places.items():
            self._serve.execute_as_root(f"SHOW MASTER STATUS '{name}'")
            rows = self._serve.execute_as_root(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
            found[name] = _texts(rows)
        return found


def _texts(rows: tuple[tuple[Any, ...], ...]) -> list[str]:
    texts: list[str] = []
    for row in rows:
        kind, info = str(row[2]), str(row[5])
        text = "rows" if "_rows" in kind and kind != "Annotate_rows" else ""
        if kind == "Query":
            text = re.sub(r"^use `\w+`; ", "", info)
        if text and text not in _OPENINGS and texts[-1:] != [text]:
            texts.append(text)
    return texts


def _empty(serve: ServeProcess) -> None:
    for row in serve.execute_as_root("SHOW BINLOGS"):
        serve.execute_as_root(f"DROP BINLOG '{row[0]}'")
    for (name,) in execute(serve.source, "SHOW DATABASES"):
        if name not in _SYSTEM:
            execute(serve.source, f"DROP DATABASE `{name}`")
    for user in ("example@'%'", "example1@localhost"):
        try:
            execute(serve.source, f"DROP USER {user}")
        except pymysql.MySQLError:
            continue

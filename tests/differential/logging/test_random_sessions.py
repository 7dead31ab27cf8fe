"""Random sessions on a real server and through ours: every error, note and event is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.differential.logging import cases
from tests.differential.logging.generator import Generator
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.servers import mariadb, mysql, mysql_folder
from tests.differential.logging.sessions import first_difference
from tests.differential.logging.shrinking import run, shrunk

_FEW = range(25)
_MANY = range(25, 900)  # with 25 statements each, 20,000 and more


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def recorder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorder]:
    directory = tmp_path_factory.mktemp("logging")
    with ExitStack() as stack:
        if request.param == "mariadb":
            server = stack.enter_context(mariadb(directory))
        else:
            folder = mysql_folder()
            if folder is None:
                pytest.skip("BINLANE_MYSQL names no folder with MySQL")
            server = stack.enter_context(mysql(directory, folder))
        made = Recorder(server)
        stack.callback(made.close)
        yield made


def test_sessions_log_as_the_server_does(recorder: Recorder) -> None:
    _compare(recorder, _FEW)


@pytest.mark.slow
def test_many_sessions_log_as_the_server_does(recorder: Recorder) -> None:
    _compare(recorder, _MANY)


def _compare(recorder: Recorder, seeds: range) -> None:
    flavor = recorder.server.flavor
    for seed in seeds:
        found = run(recorder, Generator(flavor, seed).script())
        if found is not None:
            smallest = shrunk(recorder, found)
            pytest.fail(
                f"seed {seed}: {smallest.difference}\n"
                f"as a case for {cases.FOLDER}/NAME.{flavor}.json:\n"
                f"{cases.text(smallest.script, smallest.recorded)}"
            )


def test_a_case_reads_as_it_was_written(recorder: Recorder, tmp_path: Path) -> None:
    script = Generator(recorder.server.flavor, 0).script(10)
    recorder.reset(script.schema)
    recorded = tuple(recorder.run(script.texts))
    path = tmp_path / "case.json"
    path.write_text(cases.text(script, recorded), encoding="utf-8")
    read_script, read_recorded = cases.read_file(path)
    assert read_script == script
    assert first_difference(recorder.server.flavor, read_script, read_recorded) == (
        first_difference(recorder.server.flavor, script, recorded)
    )

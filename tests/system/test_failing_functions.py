"""Functions that fail behind what they have written, in statements that do not fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest

from tests.judged_port import PortRecorder, judged
from tests.lent_servers import LENT
from tests.serve_process import ServeProcess
from tests.servers import ServerFactory, execute

_BINLOG: Final = "b"
_BODIES: Final = (
    "CREATE TABLE kept (a INT PRIMARY KEY, b VARCHAR(9)) ENGINE=MyISAM",
    "CREATE TABLE gone (a INT PRIMARY KEY, b VARCHAR(9))",
    (
        "CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC BEGIN"
        " INSERT INTO kept VALUES (x, 'f'); INSERT INTO gone VALUES (x, 'g'); RETURN x; END"
    ),
)


@pytest.fixture(scope="module")
def serve(server_directory: Path) -> Iterator[ServeProcess]:
    """A port of MariaDB with a binlog of statements; MySQL's DO fails like all other statements."""
    with ExitStack() as stack:
        source = ServerFactory(LENT, server_directory, "failing-functions", stack).start("source")
        execute(source, "CREATE DATABASE d", "USE d", *_BODIES)
        serving = stack.enter_context(judged(server_directory / "failing", source))
        serving.execute_as_root(f"CREATE BINLOG '{_BINLOG}' FORMAT='STATEMENT'")
        yield serving


def test_do_passes_over_errors_of_functions(serve: ServeProcess) -> None:
    """A replica would stop at the text: the server's own log has the error that it is to expect there."""
    execute(serve.source, "RENAME TABLE d.gone TO d.away")
    with closing(PortRecorder(serve, [_BINLOG])) as recorder:
        failed, _ = recorder.run(["DO f(1)"])
    execute(serve.source, "RENAME TABLE d.away TO d.gone")
    with closing(PortRecorder(serve, [_BINLOG])) as recorder:
        succeeded, _ = recorder.run(["DO f(2)"])
    assert failed.error is None
    assert [event.type for event in failed.events[_BINLOG]].count("Write_rows_v1") == 1
    texts = [event.info for event in succeeded.events[_BINLOG] if event.type == "Query"]
    assert "use `d`; SELECT `d`.`f`(2)" in texts

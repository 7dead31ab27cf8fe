"""Statements of some megabytes: they are read once, and not in the event loop."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from binlane.cli.main import main
from binlane.sql import reading
from binlane.sql.facts import StatementFacts
from binlane.sql.servers import Dialect
from tests.judged_statements import run_judged
from tests.servers import ServerFactory, execute

pytestmark = pytest.mark.system


def test_a_long_statement_is_read_in_a_thread(
    servers: ServerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = servers.start("source")
    assert main(["setup", "--quiet", source.url]) == 0
    execute(source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(20))")
    readers: list[str] = []
    read = reading._read

    def noted(text: str, database: str, dialect: Dialect) -> StatementFacts:
        if len(text) > 100_000:
            readers.append(threading.current_thread().name)
        return read(text, database, dialect)

    monkeypatch.setattr(reading, "_read", noted)
    insert, other = (
        "INSERT INTO t VALUES "
        + ",".join(f"({number}, 'x;')" for number in range(first, first + 20_000))
        for first in (0, 20_000)
    )
    statements = ("INSERT INTO t VALUES (-1, 'a')", insert, insert, other)
    heard, answers = run_judged(source, "d", [(False, each) for each in statements])
    assert [answer[1] for answer in answers] == [1, 20_000, 1062, 20_000]
    assert [name.rpartition("_")[0] for name in readers] == ["long texts"] * 3
    # The one that failed makes nothing.
    told: list[Any] = list(heard.told)
    (done, failed, again) = [each for each in told if each[0] == "done"][1:]
    assert (done[2], failed[2], again[2]) == (False, True, False)
    for each, text in ((done, insert), (again, other)):
        ((_, binlogs, _, _),) = each[3]
        assert binlogs["all"][0].events[-1].body.endswith(text.encode())

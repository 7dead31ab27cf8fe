"""What a session keeps of its statements: one that keeps nothing tells the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.policy.refusals import Outcome
from binlane.policy.server import Server
from binlane.session.recurring import Recurring
from binlane.session.report import StatementResult
from binlane.session.session import Session
from binlane.sql.catalog import SchemaCatalog
from tests.unit.session.test_recorded_sessions import VECTORS, session_of

_ROUNDS: Final = 3
_NUMBER: Final = re.compile(r"(?<![\w`'\".@:$])[0-9]{1,4}(?![\w`'\".:])")


def _other_numbers(statement: str, by: int) -> str:
    """The same statement with other numbers: some of them 0, which stands for much in SQL."""
    return _NUMBER.sub(lambda found: str(int(found[0]) * by if by != 2 else 0), statement)


def _told(session: Session, statements: list[tuple[str, Outcome]]) -> Iterator[StatementResult]:
    for turn in range(_ROUNDS):
        for statement, outcome in statements:
            yield session.execute(statement, outcome)
            if not statement.upper().startswith(("INSERT", "UPDATE", "DELETE", "REPLACE")):
                continue
            for by in (2, 3 + turn):
                yield session.execute(_other_numbers(statement, by), outcome)
        yield session.disconnect()


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_what_is_kept_tells_what_is_found_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flavor = path.stem.rpartition(".")[2]
    first, *records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    statements = [
        (record["sql"], Outcome(**record.get("outcome", {}))) for record in records if record["sql"]
    ]
    kept = list(_told(session_of(flavor, first["schema"]), statements))
    monkeypatch.setattr(Recurring, "again", lambda self, *_, **__: self.leave())
    assert kept == list(_told(session_of(flavor, first["schema"]), statements))


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_statements_of_one_shape_are_carried_out_once(
    flavor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = SchemaCatalog()
    objects.load("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a INT);")
    session = Session(server=Server.parse(flavor), objects=objects, database="d")
    first = session.execute("UPDATE t SET a = 1 WHERE id = 1")
    carried_out = []
    monkeypatch.setattr(Session, "_carry_out", lambda _, statement: carried_out.append(statement))
    again = session.execute("UPDATE t SET a = 77 WHERE id = 12")
    assert carried_out == []
    events = [
        [event for event in result.binlogs["binlog"].events if "UPDATE" not in event[1]]
        for result in (first, again)
    ]
    assert events[0] == events[1]
    if flavor == "mariadb":
        (told,) = [event for event in again.binlogs["binlog"].events if "UPDATE" in event[1]]
        assert "a = 77 WHERE id = 12" in told[1]

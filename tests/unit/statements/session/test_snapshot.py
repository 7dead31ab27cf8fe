"""A session that is restored does again what it did: the recorded ones, each statement twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog

VECTORS: Final = Path(__file__).parents[3] / "vectors" / "sessions"


def _session(flavor: str, schema: list[str]) -> Session:
    objects = SchemaCatalog(Flavor(flavor))
    for statement in schema:
        has_delimiter = statement.startswith("delimiter")
        script = statement if has_delimiter else f"DELIMITER $$\n{statement}$$\n"
        objects.load(script, database=objects.default_database)
    return Session(server=Server.parse(flavor), objects=objects, database="d")


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_restored_session_does_the_same_again(path: Path) -> None:
    flavor = path.stem.rpartition(".")[2]
    first, *records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    plain, restored = (_session(flavor, first["schema"]) for _ in range(2))
    start = restored.snapshot()
    for record in records:
        if not record["sql"]:
            assert restored.disconnect() == plain.disconnect()
            continue
        outcome = Outcome(**record.get("outcome", {}))
        before = restored.snapshot()
        expected = plain.execute(record["sql"], outcome)
        for _ in range(2):
            assert restored.execute(record["sql"], outcome) == expected, record
            restored.restore(before)
        restored.execute(record["sql"], outcome)
    restored.restore(start)
    again = _session(flavor, first["schema"])
    for record in records[:3]:
        if record["sql"]:
            assert restored.execute(record["sql"]) == again.execute(record["sql"]), record

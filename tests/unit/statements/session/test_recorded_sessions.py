"""Sessions recorded on MariaDB 10.11 and MySQL 9.7: every statement appends what it did there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from tests.logged_events import comparable

_RECORDED_WITH: Final = {
    "mariadb": "",
    "mysql": "set global gtid_mode=OFF; set global enforce_gtid_consistency=OFF;",
}
"""How the servers were configured."""
VECTORS: Final = Path(__file__).parents[3] / "vectors" / "sessions"


def session_of(flavor: str, schema: list[str]) -> Session:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(_RECORDED_WITH[flavor])
    for statement in schema:
        has_delimiter = statement.startswith("delimiter")
        script = statement if has_delimiter else f"DELIMITER $$\n{statement}$$\n"
        objects.load(script, database=objects.default_database)
    return Session(
        server=Server.parse(flavor), objects=objects, database="d", errors=PredictedErrors()
    )


@pytest.mark.rule("004:R-log-statement-format-error")
@pytest.mark.rule("004:R-log-statement-format-TC")
@pytest.mark.rule("004:R-log-statement-format-SC")
@pytest.mark.rule("004:R-log-row-format-temporary")
@pytest.mark.rule("004:R-log-row-format-N")
@pytest.mark.rule("004:R-log-row-format-T")
@pytest.mark.rule("004:R-flush-SC")
@pytest.mark.rule("004:R-log-commit")
@pytest.mark.rule("004:R-log-rollback")
@pytest.mark.rule("004:R-log-rollback-to-savepoint")
@pytest.mark.rule("004:R-clear-TC")
@pytest.mark.rule("004:R-log-create-select-statement-format")
@pytest.mark.rule("004:R-log-create-select-statement-format-error")
@pytest.mark.rule("004:R-log-create-select-statement-format-temporary")
@pytest.mark.rule("004:R-log-create-select-row-format-temporary")
@pytest.mark.rule("004:R-log-create-select-row-format")
@pytest.mark.rule("004:R-log-commit-statement")
@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_session_is_logged_as_the_server_logs_it(path: Path) -> None:
    flavor = path.stem.rpartition(".")[2]
    first, *records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    session = session_of(flavor, first["schema"])
    for record in records:
        _check(session, record, flavor)


def _check(session: Session, record: dict[str, Any], flavor: str) -> None:
    if record["sql"]:
        result = session.execute(record["sql"], Outcome(**record.get("outcome", {})))
    else:
        result = session.disconnect()
    assert result.unanalysed is None, record
    expected = [tuple(event) for event in record.get("events", ())]
    assert comparable(result.binlogs["binlog"].events) == comparable(expected), record
    assert (result.error.errno if result.error else None) == record.get("error"), record
    assert [note.reason for note in result.notes if note.is_told] == record.get("notes", []), record

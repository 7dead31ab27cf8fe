"""Sessions on a source predict no errors of it, but for statements inside of programs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog

_FLAVORS = ("mariadb", "mysql")
_SCHEMA = """
SET GLOBAL binlog_format = STATEMENT; CREATE DATABASE d; USE d; CREATE TABLE t (a INT PRIMARY KEY);
DELIMITER $$
CREATE PROCEDURE p() BEGIN
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
    CREATE TABLE t (z INT) ENGINE = MyISAM;
    UPDATE t SET nope = 1;
    INSERT INTO t VALUES (1);
END$$
"""


def _session(flavor: str) -> Session:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(_SCHEMA)
    return Session(
        server=Server.parse(flavor), objects=objects, database="d", program_errors=PredictedErrors
    )


@pytest.mark.parametrize("flavor", _FLAVORS)
@pytest.mark.parametrize(
    "statement",
    [
        *("UPDATE t SET nope = 1", "CREATE TABLE t (a INT)", "DROP TABLE nope", "DROP DATABASE x"),
        *("SET nosuch = 1", "CREATE TABLE n (a INT, a INT)", "CREATE PROCEDURE q() SET nope = 1"),
        *("ALTER TABLE t DROP COLUMN x", "INSERT INTO t VALUES (NULL)", "DROP USER nobody"),
    ],
)
def test_the_source_tells_the_errors_of_the_clients_statements(flavor: str, statement: str) -> None:
    session = _session(flavor)
    assert session.preview(statement).error is None
    error = session.execute(statement, Outcome(error=1105)).error
    assert error is not None
    assert error.errno == 1105


@pytest.mark.parametrize("flavor", _FLAVORS)
@pytest.mark.parametrize(
    ("statement", "errno"),
    [
        ("CREATE PROCEDURE q() RETURN 1", 1313),
        ("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.x = 1", 1054),
        ("DROP TABLE t, t", 1066),
        ("CREATE VIEW v AS SELECT 1", 1046),
        ("p()", 1064),
    ],
)
def test_an_error_of_the_parser_commits_nothing(flavor: str, statement: str, errno: int) -> None:
    session = _session(flavor)
    session.execute("BEGIN")
    session.execute("INSERT INTO t VALUES (1)")
    error = session.execute(statement, Outcome(error=errno)).error
    assert error is not None
    assert error.errno == errno
    assert session.is_in_transaction


@pytest.mark.parametrize("flavor", _FLAVORS)
def test_errors_that_a_program_catches_are_predicted(flavor: str) -> None:
    session = _session(flavor)
    events = session.execute("CALL p()").binlogs["binlog"].events
    assert [event.info for event in events if "t" in event.info.split()][:9] == [
        "use `d`; INSERT INTO t VALUES (1)"
    ]
    (table,) = session.objects.store.tables.values()
    assert table.engine == "INNODB"


def test_a_port_does_not_load_the_prediction() -> None:
    script = (
        "import sys, binlane.live.service.service, binlane.live.port.port_session;"
        "print([name for name in sys.modules if 'predicted_errors' in name])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"

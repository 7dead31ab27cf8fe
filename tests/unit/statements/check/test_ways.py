"""How `check` tells of statements whose way hangs on data."""

from __future__ import annotations

import json

from binlane.statements.check.checker import Checker
from binlane.statements.check.findings import Kind, findings
from binlane.statements.check.json_lines import json_line
from binlane.statements.policy.server import Server

SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT, b VARCHAR(50)) ENGINE=InnoDB;
SET GLOBAL binlog_format = STATEMENT;
DELIMITER //
CREATE PROCEDURE guarded() q: BEGIN
  IF (SELECT COUNT(*) FROM t) = 0 THEN LEAVE q; END IF; UPDATE t SET b = UUID(); END //
CREATE PROCEDURE refusing() IF (SELECT COUNT(*) FROM t) = 0 THEN SIGNAL SQLSTATE '45000'; END IF //
DELIMITER ;
"""


def test_json_names_what_is_on_some_ways() -> None:
    guarded, refusing = Checker(Server.parse("mariadb"), SCHEMA).check(
        "CALL guarded(); CALL refusing();"
    )
    told = json.loads(json_line("s.sql", guarded))
    assert [note["on_some_ways"] for note in told["notes"]] == [True]
    assert told["ways"] == 2
    assert told["binlogs"]["binlog"]["ways"] == 2
    assert told["depends_on"] == [
        {
            "condition": "(SELECT COUNT(*) FROM t) = 0",
            "program": "procedure d.guarded",
            "offset": 14,
        }
    ]
    assert [finding.kind for finding in findings(guarded)] == [Kind.UNSAFE]
    told = json.loads(json_line("s.sql", refusing))
    assert (told["error"]["errno"], told["error"]["on_some_ways"]) == (1644, True)
    assert list(findings(refusing)) == []

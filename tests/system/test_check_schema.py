"""`check --schema SERVER`: a live server's objects, as it has them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.cli.main import main
from binlane.live.provision.private_server import PrivateServer
from tests.servers import dump, execute

_OBJECTS = (
    "CREATE DATABASE checked_live",
    "USE checked_live",
    "CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b CHAR(36)) ENGINE=InnoDB",
    "CREATE TABLE m (a INT)",
    "CREATE VIEW v AS SELECT a, b FROM t",
    "CREATE FUNCTION f() RETURNS CHAR(36) NO SQL RETURN uuid()",
    "CREATE PROCEDURE p() UPDATE t SET b = f()",
    "CREATE TRIGGER g BEFORE INSERT ON m FOR EACH ROW UPDATE t SET b = uuid()",
    "CREATE EVENT e ON SCHEDULE AT '2037-01-01' DO DELETE FROM t",
)
_SCRIPT = """
    SET binlog_format = STATEMENT;
    USE checked_live;
    UPDATE v SET b = 'x';
    CALL p();
    INSERT INTO m VALUES (1);
    DROP EVENT e;
"""


@pytest.fixture(params=["mariadb_server", "mysql_server"])
def server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    found: PrivateServer = request.getfixturevalue(request.param)
    execute(found, "SET GLOBAL log_bin_trust_function_creators = 1", *_OBJECTS)
    yield found
    execute(found, "DROP DATABASE checked_live")


def test_all_objects_are_known(
    server: PrivateServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.sql"
    script.write_text(_SCRIPT)
    assert main(["check", "--schema", server.url, "--json", str(script)]) == 1
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["error"] for one in told] == [None] * len(told)
    unsafe = [[note["reason"] for note in one["notes"]] for one in told]
    assert unsafe[2] == []
    assert "ER_BINLOG_UNSAFE_SYSTEM_FUNCTION" in unsafe[3]
    assert "ER_BINLOG_UNSAFE_SYSTEM_FUNCTION" in unsafe[4]


def test_what_is_not_there_is_not_known(server: PrivateServer, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("DELETE FROM checked_live.nothing;")
    assert main(["check", "--schema", server.url, "--quiet", str(script)]) == 2


_IN_MODES = (
    "USE checked_live",
    "DROP TRIGGER g",
    "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
    "CREATE TABLE quoted (a VARCHAR(36))",
    r"""CREATE PROCEDURE quoted() INSERT INTO "quoted" VALUES ('\')""",
    r"""CREATE TRIGGER quoted BEFORE INSERT ON "m" FOR EACH ROW UPDATE "t" SET "b" = '\'""",
    r"""CREATE EVENT quoted ON SCHEDULE AT '2037-01-01' DO DELETE FROM "t" WHERE "b" = '\'""",
)
_OF_MODES = """
    SET binlog_format = STATEMENT;
    USE checked_live;
    CALL quoted();
    INSERT INTO m VALUES (1);
    DROP EVENT quoted;
"""


@pytest.mark.parametrize("is_dump", [False, True], ids=["server", "dump"])
def test_programs_are_read_in_the_sql_mode_of_their_creation(
    server: PrivateServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_dump: bool
) -> None:
    execute(server, *_IN_MODES)
    schema, script = server.url, tmp_path / "script.sql"
    if is_dump:
        file = tmp_path / "schema.sql"
        file.write_bytes(dump(server, "--routines", "--events", "--databases", "checked_live"))
        schema = str(file)
    script.write_text(_OF_MODES)
    assert main(["check", "--schema", schema, "--json", str(script)]) < 2
    captured = capsys.readouterr()
    assert captured.err == ""
    told = [json.loads(line) for line in captured.out.splitlines()]
    assert [one["error"] for one in told] == [None] * len(told)
    assert not any("unanalysed" in one for one in told)

"""What the servers' own clients send of a script, by the servers' general logs, and what we read."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.live.provision.private_server import PrivateServer
from binlane.statements.check.checker import Checker
from binlane.statements.policy.server import Server
from tests.servers import connect, mysql_program

_LOG: Final = ("--log-output=TABLE", "--general-log=1")
_QUERIES: Final = """
    SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log
    WHERE thread_id <> connection_id() AND command_type IN ('Query', 'Init DB') ORDER BY event_time
"""
_OWN: Final = re.compile(r"select (@@|DATABASE\(\))", re.IGNORECASE)
_INNER: Final = {
    "inner.sql": "SELECT 'inner';\nSELECT 'inner 2'",
    "dollars.sql": "DELIMITER $$\nSELECT 'inner'$$\n",
}

BOTH: Final = (
    "SELECT 1; SELECT 2;\nSELECT 3",
    "SELECT ';', \";\", `;` FROM dual; SELECT 'a\\';b', \"c\\\";d\";",
    ";;SELECT 1;;",
    "SELECT 5--3; SELECT 2;",
    "DELIMITER //\nSELECT 1;\n//\nSELECT 2//\nDELIMITER ;\nSELECT 3;",
    "DELIMITER ;;\nSELECT 1;;\nDELIMITER ;\nSELECT 2;",
    "DELIMITER '//'\nSELECT 1//\ndelimiter \"$$\"\nSELECT 2$$\n",
    "DELIMITER // and more\nSELECT 1//\n",
    "DELIMITER go\nSELECT 1\ngo\nSELECT 2 go\n",
    "\\d //\nSELECT 1//\n\\d ;\nSELECT 2;",
    "\\d//\nSELECT 1//\n",
    "SELECT 1\\g\nSELECT 2\\G\nSELECT 3\\GSELECT 4;",
    "DELIMITER //\nSELECT 1\\g\nSELECT 2//\n",
    "SELECT 1\\p;\nSELECT 2;",
    "SELECT 1 \\c\nSELECT 2;",
    "SELECT 1 \\\n+ 2;\nSELECT 2;",
    "USE d\nSELECT 1;\n\tuse d\nSELECT 2;",
    "use d;\nSELECT 1; USE d; SELECT 2;",
    "\\u d\nSELECT 1;",
    "source inner.sql\nSELECT 1;",
    "SELECT 1; SOURCE inner.sql;\nSELECT 2;",
    "\\. inner.sql\nSELECT 1;",
    "source dollars.sql\nSELECT 1$$\nSELECT 2",
    "charset utf8mb4\nSELECT 1;\n\\C utf8mb4\ncharset utf8mb4;\nSELECT 2;",
    "tee t.log\nnotee\nprint\nrehash;\nprompt x>\nwarnings\nnowarning;\n\\W\n\\w\nSELECT 1;",
    "SELECT 1;\nquit\nSELECT 2;",
    "SELECT 1;\\q\nSELECT 2;",
    "SELECT 1\nUNION SELECT 2\n;",
    "SET sql_mode = NO_BACKSLASH_ESCAPES;\nSELECT 'a\\';\nSELECT 2;",
    "SELECT 1;\r\nSELECT\r\n2;\r\nDELIMITER //\r\nSELECT 3//\r\n",
    "\ufeffSELECT 1;",
)
"""What both clients, with their commands enabled, send alike."""
OF_MARIADB: Final = (
    "-----\nSELECT 1;\n---- a; b\n--c\nSELECT 2;\n  --d\nSELECT 3;",
    "DELIMITER //\n--foo\nSELECT 1//\n--bar//\nSELECT 2//",
    "-- c\n--foo\nSELECT 1;",
)
OF_MYSQL: Final = (
    "DELIMITER //\nSELECT 1; SELECT 2//\nSELECT 3//\n",
    (
        "DELIMITER //\nDROP PROCEDURE IF EXISTS p; CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END;"
        " SELECT 4; //\nSELECT 5//\n"
    ),
    "DELIMITER //\nSELECT 1; SELECT * FROM nothing; SELECT 2//\nSELECT 3//\n",
    "DELIMITER //\nsource inner.sql\nSELECT 2//\n",
)
"""MySQL's general log has several statements of one text one by one."""


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    folder = tmp_path_factory.mktemp("mariadb")
    with PrivateServer.start(folder, name="clients", options=_LOG) as server:
        yield server


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    folder = tmp_path_factory.mktemp("mysql")
    with PrivateServer.start(
        folder, name="clients", options=_LOG, program=mysql_program()
    ) as server:
        yield server


@pytest.mark.parametrize("script", [*BOTH, *OF_MARIADB])
def test_mariadb(script: str, mariadb: PrivateServer, tmp_path: Path) -> None:
    assert _read(script, "mariadb") == _sent(script, ["mariadb"], mariadb, tmp_path)


@pytest.mark.parametrize("script", [*BOTH, *OF_MYSQL])
def test_mysql(script: str, mysql: PrivateServer, tmp_path: Path) -> None:
    folder = mysql_program().folder
    client = ["mysql"] if folder is None else [str(folder / "exec"), "/usr/bin/mysql"]
    sent = _sent(script, [*client, "--no-defaults", "--commands"], mysql, tmp_path)
    assert _read(script, "mysql") == sent


def _read(script: str, flavor: str) -> list[str]:
    """The statements that a check runs."""
    checker = Checker(Server.parse(flavor), "CREATE DATABASE d; USE d;")
    source = {name: text.encode() for name, text in _INNER.items()}
    checked = checker.check(script.encode(), source=source.__getitem__)
    return [
        _plain(one.statement.sql)
        for one in checked
        if one.result.error is None or not one.result.error.message.startswith("Not run")
    ]


def _sent(script: str, client: list[str], server: PrivateServer, folder: Path) -> list[str]:
    """The statements that a client sends, and the server reads as such."""
    for name, text in _INNER.items():
        (folder / name).write_text(text)
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS d")
        cursor.execute("TRUNCATE mysql.general_log")
        subprocess.run(
            [*client, "-uroot", "-S", str(server.socket_path), "--force", "d"],
            input=script.encode(),
            capture_output=True,
            cwd=folder,
            check=False,
            timeout=60,
        )
        cursor.execute(_QUERIES)
        told = [
            f"USE {text}" if kind == "Init DB" else text
            for kind, text in cursor.fetchall()
            if not _OWN.match(text)
        ]
    return [_plain(one) for one in told]


def _plain(statement: str) -> str:
    """A statement without what is left to each client: blanks, a last delimiter, case of USE."""
    text = " ".join(statement.rstrip("; \n").split())
    return text.upper() if text.upper().startswith(("USE ", "SET NAMES")) else text

"""Texts that servers make anew, under sql_modes that differ from those of their programs: replicas take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pymysql
import pytest

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.framing import bytes_of
from tests.port_replicas import FollowedBinlogs
from tests.serve_process import wait_until
from tests.servers import execute

_ANSI: Final = "SET sql_mode = 'ANSI_QUOTES'"
_NO_ESCAPES: Final = "SET sql_mode = 'NO_BACKSLASH_ESCAPES'"
_PLAIN: Final = "SET sql_mode = ''"

_PROGRAMS: Final = (
    _ANSI,
    (
        'CREATE PROCEDURE of_ansi() BEGIN CREATE TEMPORARY TABLE "ptmp" (a INT);'
        ' INSERT INTO "ptmp" VALUES (1); INSERT INTO "t" (a) SELECT a FROM "ptmp";'
        ' DROP TEMPORARY TABLE "ptmp"; END'
    ),
    (
        "CREATE PROCEDURE prepares() BEGIN PREPARE s FROM 'CREATE TEMPORARY TABLE \"tp\" (a INT)';"
        " EXECUTE s; DROP TEMPORARY TABLE tp; END"
    ),
    'CREATE PROCEDURE leaves() CREATE TEMPORARY TABLE "left" (a INT)',
    _PLAIN,
    (
        'CREATE PROCEDURE of_plain() BEGIN CREATE TEMPORARY TABLE ntmp (a VARCHAR(9) DEFAULT "x");'
        ' DROP TEMPORARY TABLE ntmp; INSERT INTO t (b) VALUES ("y"); END'
    ),
    "CREATE PROCEDURE keeps(x VARCHAR(20)) INSERT INTO t (b) VALUES (x)",
    _NO_ESCAPES,
    "CREATE PROCEDURE no_escapes(x VARCHAR(20)) COMMENT 'a\\b' INSERT INTO t (b) VALUES (x)",
)
_CALLS: Final = (
    _PLAIN,
    "CALL of_ansi()",
    "CALL prepares()",
    "CALL leaves()",
    "DROP TEMPORARY TABLE `left`",
    _ANSI,
    "CALL of_plain()",
    "CALL of_ansi()",
    'CREATE TEMPORARY TABLE "a""b`c\\d" (a INT)',
    'DROP TEMPORARY TABLE "a""b`c\\d"',
    'CREATE TEMPORARY TABLE "a""b`c\\e" (a INT)',
    "BEGIN",
    "INSERT INTO t (a) VALUES (2)",
    'SAVEPOINT "s`p"""',
    "INSERT INTO t (a) VALUES (3)",
    "COMMIT",
    'CREATE VIEW "v`w" AS SELECT a AS "q""r" FROM t',
    "PREPARE i FROM 'INSERT INTO \"t\" (a) VALUES (4)'",
    _PLAIN,
    "EXECUTE i",
    "CALL keeps('a\\\\b\\'c\"d')",
    "CALL no_escapes('a\\\\b\\'c\"d')",
    _NO_ESCAPES,
    "CALL keeps('a\\b''c\"d')",
    "CALL no_escapes('a\\b''c\"d')",
    "EXECUTE IMMEDIATE 'INSERT INTO t (b) VALUES (?)' USING 'a\\b''c'",
    "CREATE TEMPORARY TABLE `x\\` (a INT)",
    _ANSI,
    'CREATE TEMPORARY TABLE "stays`here""" (a INT)',
    _PLAIN,
    "CALL keeps('aé')",
    "SET NAMES latin1",
    "CALL keeps('a\udce9')",
    "EXECUTE IMMEDIATE 'INSERT INTO t (b) VALUES (?)' USING 'a\udce9'",
    "SET NAMES swe7",
    "CREATE TEMPORARY TABLE [swe] (a INT)",
    "CREATE TEMPORARY TABLE `[swe]` (a INT)",
    "DROP TEMPORARY TABLE [swe]",
    "DROP TEMPORARY TABLE `[swe]`",
    "CREATE TEMPORARY TABLE [swe] (a INT)",
    "CREATE TEMPORARY TABLE `[swe]` (a INT)",
)


@pytest.fixture(params=["mariadb", "mysql"])
def followed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FollowedBinlogs]:
    with ExitStack() as stack:
        directory = tmp_path_factory.mktemp("texts")
        yield FollowedBinlogs(stack, directory, ["STATEMENT", "MIXED"], flavor=request.param)


def _run(binlogs: FollowedBinlogs, statements: Sequence[str]) -> list[str]:
    """Run statements in a session of the port; what fails, with its error."""
    failed = []
    with closing(
        pymysql.connect(
            host="127.0.0.1",
            port=binlogs.serve.port,
            user="root",
            database="d",
            autocommit=True,
            local_infile=True,
            read_timeout=30,
        )
    ) as connection:
        for statement in statements:
            try:
                cursor = connection.cursor()
                # Bytes are sent as they are.
                cursor.execute(bytes_of(statement))  # type: ignore[call-overload]
                while cursor.nextset():
                    pass
            except pymysql.MySQLError as error:
                failed.append(f"{statement}: {error}")
    return failed


def _open_tables(replica: PrivateServer) -> int:
    """How many temporary tables a replica has open."""
    there = execute(replica, "SHOW STATUS LIKE '%open_temp_tables'")
    return sum(int(value) for _, value in there)


def test_replicas_take_what_servers_write_anew(followed: FollowedBinlogs, tmp_path: Path) -> None:
    execute(
        followed.source,
        "SET GLOBAL local_infile = 1",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b VARCHAR(40) CHARACTER SET utf8mb4)",
    )
    assert _run(followed, _PROGRAMS) == []
    file = tmp_path / "rows"
    file.write_text("5\tax\n6\ta'y\n")
    calls = [each for each in _CALLS if followed.flavor == "mariadb" or "IMMEDIATE" not in each]
    calls += [
        _NO_ESCAPES,
        f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE t (a, b)",
        _ANSI,
        f'LOAD DATA LOCAL INFILE \'{file}\' INTO TABLE "t" (a, b) SET "a" = 7',
    ]
    assert _run(followed, calls) == []
    assert followed.problems() == []
    # What the session leaves is dropped once it is known to be over.
    wait_until(lambda: not any(map(_open_tables, followed.replicas.values())))
    texts = execute(followed.source, "SELECT b FROM d.t WHERE b LIKE 'a%'")
    assert {"a\\b'c\"d", "aé", "ax", "a'y"} <= {text for (text,) in texts}

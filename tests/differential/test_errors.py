"""The answers of tests/vectors/errors.txt are those of the servers that can be had."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pymysql
import pytest

from tests.differential.logging.servers import LoggingServer, mariadb, mysql
from tests.error_cases import SERVERS, Case, cases, is_same

pytestmark = pytest.mark.system


@pytest.mark.parametrize("start", [mariadb, mysql])
def test_servers_answer_so(
    start: Callable[[Path], AbstractContextManager[LoggingServer]], tmp_path: Path
) -> None:
    with start(tmp_path) as server:
        name = f"{server.flavor}:{_version(server)}"
        if name not in SERVERS:
            pytest.skip(f"nothing was measured of {name}")
        for case in cases():
            _check(case, name, server)


def _version(server: LoggingServer) -> str:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT SUBSTRING_INDEX(VERSION(), '.', 2)")
        (version,) = cursor.fetchone() or ("",)
        return str(version)


def _check(case: Case, name: str, server: LoggingServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in ("DROP DATABASE IF EXISTS d", "CREATE DATABASE d"):
            cursor.execute(statement)
    with server.connect("d" if case.has_database else None) as connection:
        cursor = connection.cursor()
        for statement, said in case.answers(name):
            answer = ""
            try:
                cursor.execute(statement)
                while cursor.nextset():
                    pass
            except pymysql.MySQLError as error:
                answer = f"{error.args[0]} {error.args[1]}"
            assert is_same(answer, said), statement

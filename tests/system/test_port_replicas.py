"""Replicas of binlogs of each format, behind random sessions at once: their tables are the source's."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pymysql
import pytest

from tests.port_load import checksums
from tests.port_replicas import SAFE, FollowedBinlogs, tried
from tests.servers import execute


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize("is_safe", [True, False], ids=["safe", "any"])
def test_replicas_are_equal(tmp_path: Path, flavor: str, *, is_safe: bool) -> None:
    load, found = tried(
        tmp_path, seed=1, through=3, beside=1, length=40, is_safe=is_safe, flavor=flavor
    )
    assert found == []
    assert load.counts["done"] > 80


@pytest.mark.rule("001:format-is-local")
@pytest.mark.rule("001:replica-any-format")
def test_a_change_of_format_stays_where_it_is_made(tmp_path: Path) -> None:
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, ["ROW"])
        replica = binlogs.replicas["ROW"]
        execute(replica, "STOP SLAVE", "SET GLOBAL binlog_format = 'STATEMENT'", "START SLAVE")
        execute(binlogs.source, "CREATE DATABASE d", "CREATE TABLE d.t (a INT)")
        binlogs.serve.execute_as_root(
            "INSERT INTO d.t VALUES (1)",
            "ALTER BINLOG 'row' FORMAT='STATEMENT'",
            "SET SESSION binlog_format = 'MIXED'",
            "INSERT INTO d.t VALUES (2)",
        )
        assert binlogs.problems() == []
        assert execute(replica, "SELECT @@GLOBAL.binlog_format") == (("STATEMENT",),)
        assert execute(replica, "SELECT a FROM d.t ORDER BY a") == ((1,), (2,))


def test_what_mariadb_drops_and_does_not_log_its_binlogs_have_as_its_log(tmp_path: Path) -> None:
    with ExitStack() as stack:
        binlogs = FollowedBinlogs(stack, tmp_path, SAFE)
        execute(
            binlogs.source,
            *("CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (1), (2)"),
            *("CREATE TABLE d.with_it (a INT)", "CREATE TABLE d.without (a INT)"),
        )
        failing = "CREATE OR REPLACE TABLE d.{} (UNIQUE (b)) SELECT 1 b FROM d.t"
        with binlogs.serve.connect("root", "") as session, session.cursor() as cursor:
            cursor.execute("SET autocommit = 1")
            with pytest.raises(pymysql.err.IntegrityError):
                cursor.execute(failing.format("with_it"))
            cursor.execute("SET autocommit = 0")
            with pytest.raises(pymysql.err.IntegrityError):
                cursor.execute(failing.format("without"))
        assert set(checksums(binlogs.source)) == {"`d`.`t`"}
        assert set(binlogs.logged()) == {"`d`.`t`", "`d`.`without`"}
        assert binlogs.problems_by_log() == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize("is_safe", [True, False], ids=["safe", "any"])
def test_replicas_are_equal_after_much(
    tmp_path: Path, flavor: str, seed: int, workers: int, *, is_safe: bool
) -> None:
    load, found = tried(
        tmp_path,
        seed=seed,
        through=6,
        beside=2,
        length=300,
        is_safe=is_safe,
        flavor=flavor,
        workers=workers,
    )
    assert found == []
    assert load.counts["done"] > 1000

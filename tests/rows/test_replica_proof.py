"""`verify --source --replica`: replicas are held against the source where their binlog has texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.live.provision.private_server import PrivateServer
from tests.port_load import PortLoad
from tests.port_replicas import SAFE, FollowedBinlogs
from tests.replica_load import ReplicaLoad
from tests.serve_process import ADMIN
from tests.servers import execute

_SHOP: Final = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, state VARCHAR(20), total DECIMAL(10, 2))",
    "INSERT INTO shop.orders VALUES (1, 'new', 10), (2, 'new', 20), (3, 'paid', 30)",
    "UPDATE shop.orders SET total = total + 1 WHERE id < 3",
)
Verdicts = dict[tuple[str, str, str], dict[str, Any]]
"""Verdicts by binlog, table and server."""


@pytest.fixture(params=["mariadb", "mysql"])
def binlogs(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FollowedBinlogs]:
    """Binlogs of all three formats, and a stock replica of each."""
    with ExitStack() as stack:
        yield FollowedBinlogs(stack, tmp_path, SAFE, flavor=request.param)


def label(replica: PrivateServer) -> str:
    return f"127.0.0.1:{replica.port}"


def verify(binlogs: FollowedBinlogs, *formats: str, source_user: str = ADMIN) -> Verdicts:
    """Compare replicas by the command, as people run it."""
    serve, scheme = binlogs.serve, binlogs.source.program.scheme
    secret = serve.directory / "secret"
    option = f"?password-file={secret}" if source_user != "root" else ""
    command = [
        *(sys.executable, "-m", "binlane", "verify"),
        *(f"{serve.data_dir}#{each.lower()}" for each in formats),
        *("--source", f"{scheme}://{source_user}@127.0.0.1:{binlogs.source.port}{option}"),
        "--json",
    ]
    for each in formats:
        url = f"{scheme}://root@{label(binlogs.replicas[each])}#{each.lower()}"
        command += ["--replica", url]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=900, env={"MYSQL_PWD": ""}
    )
    assert done.returncode in (0, 1), done.stderr
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    return {(each["binlog"], each["table"], each["server"]): each for each in verdicts}


def complete(binlogs: FollowedBinlogs, *formats: str) -> None:
    for each in formats:
        binlogs.serve.wait_until_complete(each.lower())


def test_a_replica_of_texts_is_compared_with_the_source(binlogs: FollowedBinlogs) -> None:
    binlogs.serve.execute_as_root(*_SHOP)
    complete(binlogs, "STATEMENT")
    replica = binlogs.replicas["STATEMENT"]

    def compared() -> dict[str, Any]:
        return verify(binlogs, "STATEMENT")["statement", "shop.orders", label(replica)]

    found = verify(binlogs, "STATEMENT")
    by_source = found["statement", "shop.orders", "source"]
    assert by_source["finding"] == "not compared"
    assert "only their text" in by_source["reason"]
    one = found["statement", "shop.orders", label(replica)]
    assert (one["finding"], one["rows"], one["moving"]) == ("equal", 3, 0), json.dumps(one)
    assert (one["is_direct"], one["is_whole"]) == (True, True)

    execute(replica, "UPDATE shop.orders SET total = 0.5 WHERE id = 2")
    one = compared()
    assert one["finding"] == "different", json.dumps(one)
    assert (one["first"]["key"], one["first"]["kind"]) == ("id=2", "other values")
    assert (one["first"]["columns"], one["equal_gtid"]) == (["total"], one["gtid"])

    execute(replica, "UPDATE shop.orders SET total = 21 WHERE id = 2")
    execute(replica, "INSERT INTO shop.orders VALUES (0, 'more', 1)")
    one = compared()
    assert (one["first"]["key"], one["first"]["kind"]) == ("id=0", "missing at the source")
    execute(replica, "DELETE FROM shop.orders WHERE id IN (0, 3)")
    one = compared()
    assert (one["first"]["key"], one["first"]["kind"]) == ("id=3", "missing on the server")
    execute(replica, "INSERT INTO shop.orders VALUES (3, 'paid', 30)")
    assert compared()["finding"] == "equal"

    execute(replica, "ALTER TABLE shop.orders MODIFY total DECIMAL(12, 2)")
    one = compared()
    assert (one["first"]["kind"], one["first"]["columns"]) == ("other columns", ["total"])
    execute(replica, "DROP TABLE shop.orders")
    one = compared()
    assert (one["finding"], one["first"]["kind"]) == ("different", "the server has no such table")


def test_nothing_is_wrong_with_replicas_of_texts_under_load(binlogs: FollowedBinlogs) -> None:
    connects = [lambda: binlogs.serve.connect("root", "")] * 2
    load = ReplicaLoad(binlogs.source, connects, seed=3, pause_s=0.1, has_ddl=False)
    load.prepare()
    with load:
        under_load = verify(binlogs, "STATEMENT")
    assert load.counts["done"] > 50
    complete(binlogs, "STATEMENT")
    seen = [*under_load.values(), *verify(binlogs, "STATEMENT").values()]
    wrong = [each for each in seen if each["finding"] == "different"]
    assert not wrong, json.dumps(wrong)
    equal = [each["table"] for each in seen if each["finding"] == "equal" and each["is_direct"]]
    assert len(equal) >= 8, json.dumps(seen)


@pytest.mark.slow
def test_nothing_is_wrong_with_replicas_of_any_format_under_any_load(
    binlogs: FollowedBinlogs,
) -> None:
    load = PortLoad(binlogs.serve, seed=3, through=2, beside=1, is_safe=True, pause_s=0.2)
    load.prepare()
    seen: Verdicts = {}
    with load:
        for each in SAFE:
            seen |= verify(binlogs, each)
    wrong = [each for each in seen.values() if each["finding"] == "different"]
    assert not wrong, json.dumps(wrong)


_KINDS: Final = (
    "CREATE DATABASE shop",
    (
        "CREATE TABLE shop.kinds (name VARCHAR(20) COLLATE utf8mb4_general_ci, part INT,"
        " f FLOAT, d DOUBLE, n DECIMAL(30, 10), c CHAR(5), v VARCHAR(300), t TINYTEXT, b BLOB,"
        " e ENUM('a', 'B', ''), s SET('x', 'y'), bits BIT(13), j JSON, g GEOMETRY, p POINT,"
        " y YEAR, da DATE, ti TIME(3), dt DATETIME(6), ts TIMESTAMP NULL, vb VARBINARY(9), bi BINARY(4),"
        " u1 INT, u2 VARCHAR(9), UNIQUE KEY (u1, u2), PRIMARY KEY (name, part))"
        " DEFAULT CHARSET=utf8mb4"
    ),
    "CREATE TABLE shop.loose (a INT, b VARCHAR(9), UNIQUE KEY (a, b))",
    (
        "CREATE TABLE shop.latin (k VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_german1_ci PRIMARY KEY,"
        " v VARCHAR(9) CHARACTER SET ucs2)"
    ),
    "CREATE TABLE shop.`od``d #%, na'me\"` (`k``\"'` INT PRIMARY KEY, v INT)",
    "SET sql_mode = ''",
    (
        "INSERT INTO shop.kinds VALUES ('Key', 1, 0.1, -0.0, 1e-10, 'a ', 'ß ', '', 0x00ff, 'b', 'x,y',"
        " b'1010101010101', '{\"b\": [1, 2.50, null], \"a\": \"\\\\u00e9\"}', ST_GeomFromText('POINT(1 2)'),"
        " ST_GeomFromText('POINT(-0 2)'), 0, '0000-00-00', '-838:59:59.000', '2020-02-30 00:00:00.5',"
        " '2038-01-19 03:14:07', 'a\\0', 'a', 1, NULL)"
    ),
    (
        "INSERT INTO shop.kinds (name, part, u1, e, y, da, f, d) VALUES ('KEY', 2, 1, 'nothing', 2155,"
        " '2000-00-10', 3.4e38, 1.7976931348623157e308), ('kéy', 3, 1, NULL, NULL, NULL, NULL, NULL)"
    ),
    "UPDATE shop.kinds SET name = 'kEY', j = '[1e2, -0.0, \"x\"]' WHERE name = 'key' AND part = 1",
    "INSERT INTO shop.loose VALUES (1, NULL), (1, NULL), (NULL, NULL), (1, 'a')",
    "DELETE FROM shop.loose WHERE a = 1 AND b IS NULL LIMIT 1",
    "INSERT INTO shop.latin VALUES ('Ä', 'ж'), ('o', NULL)",
    "UPDATE shop.latin SET k = 'ä' WHERE k = 'A'",
    "INSERT INTO shop.`od``d #%, na'me\"` VALUES (1, 2)",
)


def test_values_that_are_equal_are_not_called_different(binlogs: FollowedBinlogs) -> None:
    binlogs.serve.execute_as_root(*_KINDS)
    tables = {"shop.kinds", "shop.loose", "shop.latin", "shop.od`d #%, na'me\""}
    complete(binlogs, *SAFE)
    found = verify(binlogs, *SAFE)
    for each in SAFE:
        server = label(binlogs.replicas[each])
        states = {table: found[each.lower(), table, server] for table in tables}
        assert {one["finding"] for one in states.values()} == {"equal"}, json.dumps(states)
    by_rows = {table: found["row", table, "source"]["finding"] for table in tables}
    assert set(by_rows.values()) == {"equal"}, by_rows
    replica = binlogs.replicas["STATEMENT"]
    odd = "shop.`od``d #%, na'me\"`"
    execute(
        replica,
        "SET sql_mode = ''",
        "UPDATE shop.kinds SET e = 'a', dt = '2020-01-01' WHERE part = 1",
        "INSERT INTO shop.loose VALUES (1, NULL)",
        "UPDATE shop.latin SET k = 'Ä' WHERE k = 'ä'",
        f"UPDATE {odd} SET v = 3",
    )
    found = verify(binlogs, "STATEMENT")
    told = {
        table: found["statement", table, label(replica)]["first"]["key"] for table in sorted(tables)
    }
    assert told == {
        "shop.kinds": "name='kEY', part=1",
        "shop.latin": "k='Ä'",
        "shop.loose": "a=1, b=NULL",
        "shop.od`d #%, na'me\"": "k`\"'=1",
    }, json.dumps(list(found.values()))
    assert found["statement", "shop.kinds", label(replica)]["first"]["columns"] == ["e", "dt"]

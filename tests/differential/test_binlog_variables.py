"""Random SETs: as a server takes them, and as the port sends them to one that logs full rows.

The server's errors are the same, all other variables become the same, its own variables of the log
stay; and what the model of the session makes of it is what the server's variables would have been.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.live.port.binlog_variables import (
    FORMAT,
    NAMES,
    ROW_IMAGE,
    concerns,
    known_of,
    question,
    rewrite,
)
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.results import ColumnDefinition, ResultSet
from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect
from tests.servers import connect

STATEMENTS: Final = 60
_RESET: Final = (
    "SET GLOBAL binlog_format = ROW, GLOBAL binlog_row_image = FULL,"
    " GLOBAL binlog_direct_non_transactional_updates = 0, SESSION binlog_format = ROW,"
    " SESSION binlog_row_image = FULL, SESSION binlog_direct_non_transactional_updates = 0,"
    " SESSION sql_log_bin = 1"
)
_DEFAULTS: Final = {FORMAT: "ROW", ROW_IMAGE: "FULL"}
_PREFIXES: Final = (
    *("", "", "", "@@", "@@session.", "@@SESSION.", "@@local.", "SESSION ", "LOCAL "),
    *("@@global.", "GLOBAL "),
)
_VALUES: Final = (
    *("ROW", "'row'", '"statement"', "MIXED", "'mixed'", "0", "1", "2", "3", "ON", "off", "TRUE"),
    *("FALSE", "NULL", "DEFAULT", "'bogus'", "1.5", "-1", "@u", "@v", "@@session.binlog_format"),
    *("@@global.binlog_format", "CONCAT('RO', 'W')", "(SELECT 1)", "IF(@u = 1, 'ROW', 'MIXED')"),
    *("0x524F57", "_utf8mb4'row'", "'ROW' 'X'", "1 + 1", "(0)", "full", "@@sql_log_bin"),
    *("/* c */ 1", "'1'", "N'row'", "b'1'", "DATE '2020-01-01'", "1e0", "''", "minimal"),
)
_OTHERS: Final = (
    *("@u = 1", "@v := 'row'", "@u = @@binlog_format", "@w = @@sql_log_bin + 1", "autocommit = 1"),
    *("@@session.lock_wait_timeout = 77", "SESSION lock_wait_timeout = 5", "max_error_count = 30"),
)


@pytest.fixture(params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[Flavor, Any]]:
    found = request.getfixturevalue(f"{request.param}_server")
    yield Flavor(request.param), found
    with closing(connect(found)) as connection, connection.cursor() as cursor:
        cursor.execute(_RESET)


def _statement(chance: random.Random) -> str:
    items = []
    for _ in range(chance.randint(1, 4)):
        if chance.random() < 0.6:
            name = chance.choice(_PREFIXES) + chance.choice(tuple(NAMES))
            sign = chance.choice(("=", ":="))
            items.append(f"{name} {sign} {chance.choice(_VALUES)}")
        else:
            items.append(chance.choice(_OTHERS))
    return "SET " + ", ".join(items)


def _run(connection: Connection[Cursor], text: str) -> tuple[object, ...] | None:
    """The error of a statement; None if it succeeds."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(text)
    except pymysql.MySQLError as error:
        return error.args
    return None


def _row(connection: Connection[Cursor], names: tuple[str, ...]) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(names)}")
        (row,) = cursor.fetchall()
        return row


def _answered(connection: Connection[Cursor], text: str) -> ResultSet:
    """The answer to a question, as the wire has it."""
    with connection.cursor() as cursor:
        cursor.execute(text)
        (row,) = cursor.fetchall()
        raw: Any = cursor
        types = [field.type_code for field in raw._result.fields]
    cells = tuple(
        None if cell is None else cell if isinstance(cell, bytes) else str(cell).encode()
        for cell in row
    )
    heads = tuple(ColumnDefinition(name="a", type_code=code) for code in types)
    return ResultSet(("a",) * len(heads), (cells,), ServerStatus.AUTOCOMMIT, heads)


def _session(flavor: Flavor) -> Session:
    statement = parse_binlog_statement("CREATE BINLOG 'b' FORMAT='ROW'")
    assert isinstance(statement, CreateBinlog)
    version = "10.11.19" if flavor is Flavor.MARIADB else "9.7.4"
    session = Session(
        server=Server.of(flavor.value, version),
        objects=SchemaCatalog(flavor),
        definitions=[create(statement, 1, ignores_case=False)],
        logs_source=True,
    )
    session.begin_with({})
    return session


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]
)
def test_set_at_the_port_is_set_at_the_server(server: tuple[Flavor, Any], seed: int) -> None:
    flavor, source = server
    chance = random.Random(seed)
    for _ in range(STATEMENTS):
        text = _statement(chance)
        first = chance.choice(("1", "'row'", "'bogus'"))
        with closing(connect(source)) as plain, closing(connect(source)) as port:
            for connection in (plain, port):
                assert _run(connection, _RESET) is None
                assert _run(connection, f"SET @u = {first}, @v = 'statement'") is None
            _compare(flavor, text, plain, port)


_VERSIONS = {Flavor.MARIADB: (10, 11, 19), Flavor.MYSQL: (9, 7, 4)}


def _compare(
    flavor: Flavor, text: str, plain: Connection[Cursor], port: Connection[Cursor]
) -> None:
    own = tuple(f"@@SESSION.{name}" for name in NAMES)
    own += tuple(f"@@GLOBAL.{name}" for name in NAMES if name != "sql_log_bin")
    others = ("@u", "@v", "@w", "@@autocommit", "@@lock_wait_timeout", "@@max_error_count")
    facts = read(text, database="", dialect=Dialect(flavor=flavor.value, version=_VERSIONS[flavor]))
    assert facts.effects.stopped_at is None, text
    if not concerns(facts):
        return
    wanted = _run(plain, text)
    values, left = _row(plain, own), _row(plain, others)
    assert _run(plain, _RESET) is None
    before = _row(port, own)
    session = _session(flavor)
    known = known_of(session)
    refused: tuple[object, ...] | None = None
    try:
        asked = question(facts, known)
        answer = None if asked is None else _answered(port, asked)
        told = rewrite(facts, known, answer, flavor=flavor)
        refused = _run(port, told.source)
    except pymysql.MySQLError as error:
        refused = error.args
    assert refused == wanted, text
    assert _row(port, own) == before, text
    if wanted is not None:
        return
    assert _row(port, others) == left, text
    assert session.execute(told.model).error is None
    found = [_value(known(name, False) or "") for name in NAMES]
    found += [
        _value(told.global_values.get(name) or _DEFAULTS.get(name, "OFF"))
        for name in NAMES
        if name != "sql_log_bin"
    ]
    defaulted = {name for name, value in told.global_values.items() if value is None}
    for name, is_, should in zip(own, found, values, strict=True):
        assert is_ == should or name.rpartition(".")[2] in defaulted, (text, name)


def _value(text: str) -> str | int:
    return {"ON": 1, "OFF": 0}.get(text, text)

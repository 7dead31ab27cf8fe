"""What accounts may do, and what becomes of them: as on a real server, statement by statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pymysql
import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlane.log.codec.types import Flavor
from binlane.statements.check.schema import server_of_version
from binlane.statements.predicted_errors.errors import PredictedErrors
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.accounts import AccountName
from binlane.statements.sql.catalog import SchemaCatalog
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.servers import mariadb, mysql
from tests.differential.privileges import generator
from tests.logged_events import comparable

_FEW = range(8)
_MANY = range(8, 400)
_LEAST_EQUAL = 0.998
_STATEMENTS = 60
_ASKED = frozenset({1044, 1045, 1142, 1143, 1227, 1356, 1370, 1449, 1698})
"""Errors of privileges: who gives one of these must be the other, too."""
_HELD = frozenset({"root", "mariadb.sys", "mysql.sys", "mysql.session", "mysql.infoschema"})
_MOVING = ("CREATE", "DROP", "ALTER", "RENAME", "GRANT", "REVOKE", "USE", "TRUNCATE", "LOCK")
"""After a difference in one of these the two are not alike any more."""


class Difference(NamedTuple):
    """A statement that ended otherwise."""

    seed: int
    sql: str
    server: object
    ours: object


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def recorder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorder]:
    directory = tmp_path_factory.mktemp("privileges")
    with ExitStack() as stack:
        start = mariadb if request.param == "mariadb" else mysql
        made = Recorder(stack.enter_context(start(directory)))
        stack.callback(made.close)
        yield made


def test_accounts_may_do_what_the_server_lets_them_do(recorder: Recorder) -> None:
    assert [one for seed in _FEW for one in _denials(recorder, seed)] == []


def test_account_statements_do_what_the_server_does(recorder: Recorder) -> None:
    assert [one for seed in _FEW for one in _changes(recorder, seed)] == []


@pytest.mark.slow
def test_many_accounts(recorder: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        one for seed in _MANY for one in (*_denials(recorder, seed), *_changes(recorder, seed))
    ]
    with capsys.disabled():
        print(*found, sep="\n")  # noqa: T201  # what is left is read by people
    assert len(found) < 2 * len(_MANY) * _STATEMENTS * (1 - _LEAST_EQUAL)


def _denials(recorder: Recorder, seed: int) -> Iterator[Difference]:
    """Where statements of an account end otherwise than on the server."""
    flavor = recorder.server.flavor
    _forget_accounts(recorder)
    recorder.reset(())
    schema = [*generator.ACCOUNTS, *generator.SCHEMA]
    with recorder.server.connect() as root:
        _run(root, schema)
        given = [sql for sql in generator.grants(seed, flavor) if _errno(root, sql) is None]
    session = _session(recorder, (*schema, *given), AccountName("u", "localhost"))
    with pymysql.connect(
        unix_socket=str(recorder.server.socket_path), user="u", autocommit=True
    ) as connection:
        if _errno(connection, "USE d") is None:
            session.execute("USE d")
        for sql in generator.statements(seed, flavor, _STATEMENTS):
            expected, result = _errno(connection, sql), session.execute(sql)
            actual = None if result.error is None else result.error.errno
            if expected != actual and not _ASKED.isdisjoint((expected, actual)):
                yield Difference(seed, sql, expected, result.error)
            if (expected is None) != (actual is None) and sql.startswith(_MOVING):
                return


def _changes(recorder: Recorder, seed: int) -> Iterator[Difference]:
    """Where account statements end otherwise than on the server, or are logged otherwise."""
    flavor = recorder.server.flavor
    _forget_accounts(recorder)
    recorder.reset(())
    with recorder.server.connect() as root:
        _run(root, generator.ACCOUNT_SCHEMA)
    session = _session(recorder, generator.ACCOUNT_SCHEMA, AccountName("root", "localhost"))
    session.execute("USE d")
    statements = generator.account_statements(seed, flavor, _STATEMENTS)
    for sql, done in zip(statements, recorder.run(statements), strict=False):
        result = session.execute(sql)
        actual = None if result.error is None else result.error.errno
        if (done.error, comparable(done.events)) != (actual, _events(result)):
            yield Difference(seed, sql, (done.error, done.events), (result.error, _events(result)))
            if (done.error is None) != (actual is None):
                return


def _session(recorder: Recorder, schema: Iterable[str], account: AccountName) -> Session:
    with recorder.server.connect() as root, root.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        [[version]] = cursor.fetchall()
    server = server_of_version(version)
    objects = SchemaCatalog(Flavor(server.flavor))
    settings = ["SET GLOBAL log_bin_trust_function_creators = 1"]
    if not server.is_mariadb:
        settings += ["SET GLOBAL gtid_mode = OFF", "SET GLOBAL enforce_gtid_consistency = OFF"]
    script = "".join(f"{sql}$$\n" for sql in (*settings, *schema))
    objects.load(f"DELIMITER $$\n{script}", version=server.version)
    return Session(server=server, objects=objects, account=account, errors=PredictedErrors())


def _events(result: StatementResult) -> list[Any]:
    return comparable([event for one in result.binlogs.values() for event in one.events])


def _forget_accounts(recorder: Recorder) -> None:
    """Drop all users and roles but the server's own."""
    with recorder.server.connect() as root, root.cursor() as cursor:
        cursor.execute("SELECT User, Host FROM mysql.user")
        for user, host in cursor.fetchall():
            if user not in _HELD and _errno(root, f"DROP USER `{user}`@`{host}`") is not None:
                root.query(f"DROP ROLE `{user}`")


def _run(connection: Connection[Cursor], statements: Iterable[str]) -> None:
    for sql in statements:
        connection.query(sql)


def _errno(connection: Connection[Cursor], sql: str) -> int | None:
    try:
        connection.query(sql)
    except pymysql.MySQLError as error:
        return int(error.args[0])
    return None

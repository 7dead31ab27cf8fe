"""EXPLAIN BINLOG of what the port knows: of all objects, for whom may see them, as the session is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import pytest

from binlane.client.session import ServerSession, Texts
from binlane.client.settings import ServerUrl
from binlane.errors import StatementError
from binlane.live.answers.explain_answers import explain_binlog
from binlane.live.gateway.handler import HandlerSession
from binlane.live.port.live_catalog import LiveCatalog
from binlane.live.provision.private_server import PrivateServer
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from binlane.statements.session.session import Session
from tests.judged_port import judged
from tests.live_catalog import live, settings_of
from tests.servers import ServerFactory, execute


@dataclass(frozen=True)
class Answered:
    """A result set, as far as it is looked at."""

    rows: Texts

    def texts(self) -> Texts:
        return self.rows


class Client:
    """A client's session on the source, for `closing`."""

    def __init__(self, server: PrivateServer, user: str, password: str = "") -> None:
        url = ServerUrl.parse(server.url.replace("root@", f"{user}@"))
        self._session = ServerSession(url, password)
        self.close = self._session.close
        self.server_version = self._session.version

    async def query_source(self, statement: str) -> Any:
        try:
            return Answered(self._session.ask(statement))
        except Exception as error:
            errno = getattr(error, "errno", None)
            if errno is None:
                raise
            raise StatementError(str(error), errno=errno) from None


@pytest.fixture(scope="module")
def server(mariadb_server: PrivateServer) -> Iterator[PrivateServer]:
    execute(
        mariadb_server,
        "CREATE DATABASE told",
        "CREATE DATABASE hidden_place",
        "CREATE TABLE told.t (a INT PRIMARY KEY, b VARCHAR(99)) ENGINE=InnoDB",
        "CREATE TABLE told.alone (a INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE hidden_place.child (a INT, FOREIGN KEY (a) REFERENCES told.t (a)"
        " ON DELETE CASCADE) ENGINE=InnoDB",
        "CREATE USER seeing@'%' IDENTIFIED BY 'secret'",
        "GRANT ALL ON told.* TO seeing@'%'",
    )
    yield mariadb_server
    execute(
        mariadb_server,
        "DROP DATABASE hidden_place",
        "DROP DATABASE told",
        "DROP USER seeing@'%'",
    )


def definition(text: str) -> Definition:
    parsed = parse_binlog_statement(f"CREATE BINLOG 'narrow' {text}")
    assert isinstance(parsed, CreateBinlog)
    return create(parsed, 1)


async def explained(
    client: Client, catalog: LiveCatalog, model: Session, statement: str
) -> list[dict[str, Any]]:
    answer = await explain_binlog(
        cast("HandlerSession", client),
        statement,
        model.definitions or (),
        live=catalog,
        model=model,
    )
    heads = [column.name for column in answer.heads]
    return [dict(zip(heads, row, strict=True)) for row in answer.rows]


def model_of(catalog: LiveCatalog, *definitions: Definition) -> Session:
    assert catalog.server is not None
    return Session(
        server=catalog.server,
        objects=catalog.catalog(),
        definitions=definitions,
        database="told",
        logs_source=True,
    )


def test_what_the_client_may_not_see_counts_and_is_not_told(server: PrivateServer) -> None:
    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            model = model_of(catalog, definition("LOG(told)"))
            statement = "DELETE FROM t WHERE a = 1"
            with closing(Client(server, "root")) as root:
                (told,) = await explained(root, catalog, model, statement)
            assert (told["Binlog"], told["Verdict"]) == ("narrow", "REFUSED")
            assert "hidden_place" in told["Message"] + told["Through"]
            with closing(Client(server, "seeing", "secret")) as seeing:
                with pytest.raises(StatementError, match="may not see") as raised:
                    await explained(seeing, catalog, model, statement)
                (told,) = await explained(seeing, catalog, model, "DELETE FROM alone WHERE a = 1")
            assert "hidden_place" not in str(raised.value)
            assert told["Verdict"] == "SAFE"

    asyncio.run(run())


def test_it_answers_for_the_session_as_it_is_and_leaves_it_so(server: PrivateServer) -> None:
    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            model = model_of(catalog, definition("FORMAT='STATEMENT'"))
            model.execute("CREATE TEMPORARY TABLE alone (a INT, b INT)")
            model.execute("BEGIN")
            version = model.objects.version
            with closing(Client(server, "root")) as root:
                unsafe = "INSERT INTO alone VALUES (1, UUID())"
                (told,) = await explained(root, catalog, model, unsafe)
                assert (told["Verdict"], told["Reason"]) == (
                    "UNSAFE",
                    "ER_BINLOG_UNSAFE_SYSTEM_FUNCTION",
                )
                (told,) = await explained(root, catalog, model, "DROP TEMPORARY TABLE alone")
                assert told["Verdict"] == "SAFE"
            assert model.objects.version is version
            assert model.is_in_transaction
            assert [one.name.table for one in model.objects.temporary_tables()] == ["alone"]

    asyncio.run(run())


def test_dynamic_statements_are_followed(server: PrivateServer) -> None:
    async def run() -> None:
        async with live(settings_of(server)) as catalog:
            model = model_of(catalog, definition("FORMAT='STATEMENT'"))
            model.execute("PREPARE s FROM 'INSERT INTO told.t VALUES (1, UUID())'")
            with closing(Client(server, "root")) as root:
                (told,) = await explained(root, catalog, model, "EXECUTE s")
            assert (told["Verdict"], told["Logged_as"]) == ("UNSAFE", "STATEMENT")

    asyncio.run(run())


def test_through_the_port_it_is_told_of_the_clients_own_session(servers: ServerFactory) -> None:
    source = servers.start("explained")
    execute(
        source,
        "CREATE DATABASE told",
        "CREATE TABLE told.t (a INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE told.m (a INT) ENGINE=MyISAM",
    )
    with (
        judged(source.directory / "serve", source) as serve,
        serve.connect("root", "") as client,
        client.cursor() as cursor,
    ):
        cursor.execute("CREATE BINLOG 'b' FORMAT='STATEMENT'")
        cursor.execute("USE told")
        client.begin()
        cursor.execute("INSERT INTO t VALUES (1)")
        cursor.execute("EXPLAIN BINLOG INSERT INTO m VALUES (1)")
        (told,) = cursor.fetchall()
        assert told[4] == "ER_BINLOG_UNSAFE_NONTRANS_AFTER_TRANS", told
        client.rollback()
        cursor.execute("EXPLAIN BINLOG INSERT INTO m VALUES (1)")
        (told,) = cursor.fetchall()
        assert told[2] == "SAFE", told
        # What was changed past the port is known when the log has told of it.
        execute(source, "ALTER TABLE told.t ADD COLUMN b INT AUTO_INCREMENT UNIQUE")
        execute(source, "CREATE TABLE told.made (a INT)")
        deadline_s = time.monotonic() + 30
        while True:
            cursor.execute("EXPLAIN BINLOG INSERT INTO made SELECT b FROM t")
            (told,) = cursor.fetchall()
            if told[3] is None or time.monotonic() > deadline_s:
                break
        assert (told[1], told[2]) == ("STATEMENT", "SAFE"), told

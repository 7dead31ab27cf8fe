"""The definitions of a server's tables, asked of the server itself."""

from __future__ import annotations

import pytest

from binlane.client.schema import read_schema
from binlane.client.settings import ServerUrl
from binlane.errors import PeerError
from binlane.live.provision.private_server import PrivateServer
from binlane.names import TableName
from binlane.statements.sql.logged_objects import LoggedObjects
from tests.servers import execute


def test_a_server_tells_the_columns_of_its_tables(mariadb_server: PrivateServer) -> None:
    execute(
        mariadb_server,
        "CREATE DATABASE `sche``ma` CHARACTER SET greek",
        "USE `sche``ma`",
        "CREATE TABLE `a``b` (id UUID, t TEXT, e ENUM('x','y;z')) WITH SYSTEM VERSIONING",
        "CREATE VIEW v AS SELECT 1 AS a",
        "CREATE SEQUENCE counter",
    )
    definitions = read_schema(ServerUrl.parse(mariadb_server.url), "")
    assert all(one.database != "sys" for one in definitions)
    catalog = LoggedObjects()
    catalog.load_statements(definitions)
    found = catalog.definition(TableName("sche`ma", "a`b"))
    assert found is not None
    assert found.is_versioned
    assert [(column.name, column.type_name, column.charset) for column in found.columns] == [
        ("id", "UUID", "binary"),
        ("t", "TEXT", "greek"),
        ("e", "ENUM", "greek"),
    ]
    assert found.columns[2].arguments == ("x", "y;z")
    sequence = catalog.definition(TableName("sche`ma", "counter"))
    assert sequence is not None
    assert len(sequence.columns) == 8
    assert catalog.definition(TableName("sche`ma", "v")) is None
    assert catalog.definition(TableName("mysql", "global_priv")) is not None


def test_a_server_that_refuses_is_an_error(mariadb_server: PrivateServer) -> None:
    with pytest.raises(PeerError, match="Access denied"):
        read_schema(ServerUrl.parse(mariadb_server.url.replace("root", "nobody")), "wrong")

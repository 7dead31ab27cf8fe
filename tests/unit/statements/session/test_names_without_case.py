"""Scopes of binlogs on a server that keeps names in lower case."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog

SCHEMA = "CREATE DATABASE shop; CREATE TABLE shop.orders (a INT); CREATE TABLE shop.log (a INT);"


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize("names", ["0", "1"])
def test_a_binlog_that_is_defined_in_the_session(flavor: str, names: str) -> None:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(f"SET GLOBAL lower_case_table_names = {names};" + SCHEMA)
    session = Session(server=Server.parse(flavor), objects=objects, definitions=(), database="shop")
    assert session.execute("CREATE BINLOG 'b' LOG(Shop.Orders)").error is None
    logged = bool(session.execute("INSERT INTO orders VALUES (1)").binlogs["b"].bodies)
    assert logged is (names == "1")
    assert not session.execute("INSERT INTO log VALUES (1)").binlogs["b"].bodies
    if names == "1":
        assert session.execute("TRUNCATE TABLE ORDERS").binlogs["b"].bodies

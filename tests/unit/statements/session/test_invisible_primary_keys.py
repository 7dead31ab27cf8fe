"""sql_generate_invisible_primary_key: what MySQL 9.7 logged of tables without a key."""

from __future__ import annotations

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog

_KEY = "`my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /*!80023 INVISIBLE */"


def texts(*statements: str) -> list[list[str]]:
    """The texts of the Query events of each statement."""
    objects = SchemaCatalog(Flavor.MYSQL)
    objects.load("create database d; use d;")
    session = Session(server=Server.parse("mysql:9.7"), objects=objects, database="d")
    session.execute("set sql_generate_invisible_primary_key = on")
    done = [session.execute(statement) for statement in statements]
    assert [one.error for one in done] == [None] * len(done)
    return [
        [text for kind, text in one.binlogs["binlog"].events if kind == "Query"] for one in done
    ]


def test_the_definition_is_logged_with_the_key() -> None:
    (plain,), (_, selected) = texts("create table t (a int)", "create table u select 1 as a")
    assert plain == (
        f"use `d`; CREATE TABLE `t` (\n  {_KEY},\n  `a` int DEFAULT NULL,\n"
        "  PRIMARY KEY (`my_row_id`)\n) /* xid=# */"
    )
    assert selected == (
        f"use `d`; CREATE TABLE `u` (\n  {_KEY},\n  `a` int NOT NULL DEFAULT '0',\n"
        "  PRIMARY KEY (`my_row_id`)\n) START TRANSACTION"
    )


def test_a_copy_of_a_definition_is_logged_as_it_was_written() -> None:
    text = "create table u like t"
    _, copied = texts("create table t (a int)", text)
    assert copied == [f"use `d`; {text} /* xid=# */"]


def test_a_table_with_a_key_is_logged_as_it_was_written() -> None:
    text = "create table t (a int primary key)"
    assert texts(text) == [[f"use `d`; {text} /* xid=# */"]]

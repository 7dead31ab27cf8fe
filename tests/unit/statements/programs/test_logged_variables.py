"""User variables that are set and read in one statement, in triggers and by LOAD DATA.

What is expected was recorded on MariaDB 10.11 and MySQL 9.7.
"""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog

SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(50)) ENGINE=InnoDB;
CREATE TABLE u (a INT, b VARCHAR(50)) ENGINE=InnoDB;
CREATE TABLE l (a INT, b VARCHAR(50)) ENGINE=InnoDB;
"""
INSERT = "insert into t values (1, 'x')"


def read(statement: str, flavor: str, trigger: str = "") -> list[str]:
    """The `User var` events of a statement behind `set @a = 3`."""
    catalog = SchemaCatalog(Flavor(flavor))
    catalog.load(SCHEMA + (f"DELIMITER //\n{trigger}//\n" if trigger else ""))
    made = Session(server=Server.parse(flavor), objects=catalog, database="d")
    made.execute("set session binlog_format = statement")
    made.execute("set @a = 3")
    events = made.execute(statement).binlogs["binlog"].events
    return [info for kind, info in events if kind == "User var"]


@pytest.mark.parametrize(
    "statement, mariadb, mysql",
    [
        ("insert into u values (@a := 5, @a)", ["@`a`=3"], []),
        ("insert into u values (@a, @a := 5)", ["@`a`=3"], ["@`a`=3"]),
        ("insert into u select @a := @a + 1, 'x' from t", ["@`a`=3"], ["@`a`=3"]),
        ("insert into u values (1, @b := @a), (@b, 'x')", ["@`a`=3"], ["@`a`=3"]),
        ("update u set a = @a, b = (@a := 7)", ["@`a`=3"], ["@`a`=3"]),
    ],
)
def test_set_and_read_in_one_statement(
    statement: str, mariadb: list[str], mysql: list[str]
) -> None:
    assert read(statement, "mariadb") == mariadb
    assert read(statement, "mysql") == mysql


@pytest.mark.parametrize(
    "body, mariadb, mysql",
    [
        ("set @a = @a + 1", ["@`a`=3"], ["@`a`=3"]),
        ("set new.b = @a", ["@`a`=3"], ["@`a`=3"]),
        ("begin set @a = 9; insert into l values (@a, 'l'); end", ["@`a`=9"], []),
        ("if @a = 3 then insert into l values (1, 'l'); end if", ["@`a`=3"], ["@`a`=3"]),
        ("begin declare v int; set v = @a; end", ["@`a`=3"], ["@`a`=3"]),
        ("begin select @a into @b; insert into l values (@b, 'v'); end", ["@`a`=3"], ["@`a`=3"]),
        ("insert into l values (@a, @z)", ["@`a`=3", "@`z`=NULL"], ["@`a`=3", "@`z`=NULL"]),
    ],
)
def test_in_a_trigger(body: str, mariadb: list[str], mysql: list[str]) -> None:
    trigger = f"create trigger g before insert on t for each row {body}"
    assert read(INSERT, "mariadb", trigger) == mariadb
    assert read(INSERT, "mysql", trigger) == mysql


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_load_data_leaves_what_nobody_knows(flavor: str) -> None:
    made = Session(server=Server.parse(flavor), objects=SchemaCatalog(Flavor(flavor)), database="d")
    made.objects.load(SCHEMA)
    made.execute("set session binlog_format = statement")
    made.execute("load data infile '/f' into table u (a, @x) set b = concat(@x, 'a')")
    events = made.execute("insert into u values (@x, 'q')").binlogs["binlog"].events
    assert [info for kind, info in events if kind == "User var"] == ["@`x`=#"]

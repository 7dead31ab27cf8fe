"""Texts of definitions as they are logged; measured on MariaDB 10.11.19 and MySQL 9.7.4."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from tests.checked import results


def _session(flavor: str, schema: str = "") -> Session:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load("SET GLOBAL log_bin_trust_function_creators=1; CREATE DATABASE d; USE d;" + schema)
    return Session(server=Server.parse(flavor), objects=objects, database="d")


def _logged(session: Session, statement: str) -> str:
    (binlog,) = session.execute(statement).binlogs.values()
    return binlog.events[-1].info


@pytest.mark.parametrize(
    ("flavor", "head", "logged"),
    [
        ("mariadb", "FUNCTION f ( a INT ,  b INT )", "FUNCTION `f`(a INT ,  b INT )"),
        ("mariadb", "FUNCTION f( /* of a */ a INT)", "FUNCTION `f`(a INT)"),
        ("mariadb", "FUNCTION f( )", "FUNCTION `f`()"),
        ("mysql", "FUNCTION f ( a INT )", "FUNCTION `f`( a INT )"),
        ("mysql", "FUNCTION f( )", "FUNCTION `f`( )"),
    ],
)
def test_only_mariadb_leaves_out_blanks_before_parameters_of_functions(
    flavor: str, head: str, logged: str
) -> None:
    info = _logged(_session(flavor), f"CREATE {head} RETURNS INT RETURN 1")
    assert info.startswith(f"use `d`; CREATE DEFINER=`root`@`localhost` {logged} RETURNS int")


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_parameters_of_procedures_are_as_they_were_written(flavor: str) -> None:
    info = _logged(_session(flavor), "CREATE PROCEDURE p (  a INT ) SELECT 1")
    assert info.startswith("use `d`; CREATE DEFINER=`root`@`localhost` PROCEDURE `p`(  a INT )\n")


@pytest.mark.parametrize(
    ("engine", "hiding", "end"),
    [("InnoDB", "MyISAM", " /* xid=# */"), ("MyISAM", "InnoDB", "")],
)
def test_mysql_renames_the_table_that_a_temporary_one_hides(
    engine: str, hiding: str, end: str
) -> None:
    session = _session("mysql", f"CREATE TABLE t (a INT) ENGINE={engine};")
    session.execute(f"CREATE TEMPORARY TABLE t (a INT) ENGINE={hiding}")
    text = "RENAME TABLE t TO u"
    assert _logged(session, text) == f"use `d`; {text}{end}"


@pytest.mark.parametrize(
    ("statement", "logged"),
    [
        (
            "GRANT SELECT (a), INSERT ON t TO u",
            'GRANT SELECT ("a"), INSERT ON "d"."t" TO \'u\'@\'%\'',
        ),
        ("GRANT SELECT ON d.* TO u", "GRANT SELECT ON \"d\".* TO 'u'@'%'"),
        (
            "CREATE USER x DEFAULT ROLE r",
            "CREATE USER 'x'@'%' IDENTIFIED WITH 'caching_sha2_password' DEFAULT ROLE `r`@`%`",
        ),
        (
            "GRANT SELECT ON *.* TO u AS root@localhost WITH ROLE ALL EXCEPT r, u",
            (
                "GRANT SELECT ON *.* TO 'u'@'%' AS 'root'@'localhost' WITH ROLE ALL EXCEPT"
                " 'r'@'%','u'@'%'"
            ),
        ),
        (
            (
                "CREATE USER x REQUIRE ISSUER 'b' SUBJECT 'a' PASSWORD HISTORY 5 ACCOUNT LOCK"
                " PASSWORD EXPIRE INTERVAL 3 DAY COMMENT 'it''s'"
            ),
            (
                "CREATE USER 'x'@'%' IDENTIFIED WITH 'caching_sha2_password'"
                " REQUIRE SUBJECT 'a' ISSUER 'b' PASSWORD EXPIRE INTERVAL 3 DAY ACCOUNT LOCK"
                " PASSWORD HISTORY 5 COMMENT 'it\\'s'"
            ),
        ),
        ("ALTER USER `o'x` ACCOUNT LOCK", "ALTER USER 'o\\'x'@'%' ACCOUNT LOCK"),
    ],
)
def test_mysql_writes_account_statements_anew(statement: str, logged: str) -> None:
    session = _session("mysql", "CREATE TABLE t (a INT); CREATE USER u, `o'x`; CREATE ROLE r;")
    session.execute("SET sql_mode = 'ANSI_QUOTES'")
    assert _logged(session, statement) == f"use `d`; {logged} /* xid=# */"


def test_mariadb_means_the_user_where_a_role_has_his_name() -> None:
    session = _session("mariadb", "CREATE USER u; CREATE ROLE u;")
    assert _logged(session, "SET PASSWORD FOR u = ''") == "use `d`; SET PASSWORD FOR 'u'@'%'=''"


@pytest.mark.parametrize(("server", "shown"), [("mariadb", "int(11)"), ("mysql", "int")])
def test_a_type_that_nobody_knows_is_said_to_be_unknown(server: str, shown: str) -> None:
    script = """
        SET SESSION binlog_format = ROW;
        CREATE TABLE test.z SELECT f, format(f, 2) AS g FROM test.foo
    """
    *_, made = results(script, server=server)
    (binlog,) = made.binlogs.values()
    text = next(info for _, info in binlog.events if "CREATE TABLE `z`" in info)
    assert f"(\n  `f` {shown} NOT NULL" in text
    assert "\n  `g` ? DEFAULT NULL\n)" in text

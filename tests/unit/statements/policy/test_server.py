"""Which servers there are, and what a version has."""

from __future__ import annotations

import pytest

from binlane.errors import ConfigError
from binlane.log.codec.types import Flavor
from binlane.statements.policy.reasons import Reason, text
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.servers import Fact


def run(server: str, *statements: str, schema: str = "") -> list[list[tuple[str, str]]]:
    rules = Server.parse(server)
    objects = SchemaCatalog(Flavor(rules.flavor))
    objects.load(f"create database d; use d; {schema}", version=rules.version)
    session = Session(server=rules, objects=objects, database="d")
    done = [session.execute(statement) for statement in statements]
    assert [one.error for one in done] == [None] * len(done)
    return [[(e.type, e.info) for e in one.binlogs["binlog"].events] for one in done]


@pytest.mark.parametrize(
    "name", ["mariadb:9.9", "mysql:6.0", "mariadb:10.12", "mysql:7", "mysql:9.8"]
)
def test_versions_that_do_not_exist_are_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(ConfigError, match=f"there is no {name.replace(':', ' ')}") as caught:
        Server.parse(name)
    assert "10.11" in caught.value.hint or "8.4" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("mariadb:10.6", (10, 6, 99)),
        ("mariadb:11.8.6", (11, 8, 6)),
        ("mariadb:12", (12, 3, 99)),
        ("mysql:5.7.44-log", (5, 7, 44)),
        ("mysql:8", (8, 4, 99)),
        ("mysql:8.0", (8, 0, 99)),
    ],
)
def test_what_is_not_said_of_a_version_is_the_newest(
    name: str, version: tuple[int, int, int]
) -> None:
    assert Server.parse(name).version == version


def test_a_server_that_is_there_may_be_newer_than_all_that_is_known() -> None:
    assert Server.of("mysql", "9.9.1-commercial").version == (9, 9, 1)
    assert Server.of("mysql", "9.9.1").has(Fact.SERVER_FOREIGN_KEYS)


@pytest.mark.parametrize(
    ("name", "is_mended"),
    [
        ("mariadb:10.6", False),
        ("mariadb:10.11.5", False),
        ("mariadb:10.11.18", True),
        ("mariadb:11.0", False),
        ("mariadb:11.4.5", False),
        ("mariadb:11.4", True),
        ("mariadb:11.8.6", False),
        ("mariadb:11.8.9", True),
        ("mariadb:12", True),
        ("mysql", False),
    ],
)
def test_fixes_come_to_a_series_with_one_of_its_releases(name: str, *, is_mended: bool) -> None:
    assert Server.parse(name).has(Fact.LOGS_ALL_OPTIONS) is is_mended


@pytest.mark.parametrize(
    ("name", "variable", "value"),
    [
        ("mariadb:11.4", "character_set_server", "latin1"),
        ("mariadb:11.8", "character_set_server", "utf8mb4"),
        ("mariadb:10.6", "binlog_format", "MIXED"),
        ("mysql:5.7", "character_set_server", "latin1"),
        ("mysql:5.7", "innodb_autoinc_lock_mode", "1"),
        ("mysql:8.0", "innodb_autoinc_lock_mode", "2"),
        ("mysql:8.4", "enforce_gtid_consistency", "OFF"),
        ("mysql:9.7", "enforce_gtid_consistency", "ON"),
        ("mariadb:10.6", "enforce_gtid_consistency", ""),
    ],
)
def test_defaults_of_stock_servers(name: str, variable: str, value: str) -> None:
    assert Server.parse(name).default(variable) == value


@pytest.mark.parametrize(
    ("name", "collation"),
    [
        ("mariadb:10.11", "utf8mb4_general_ci"),
        ("mariadb:11.8", "utf8mb4_uca1400_ai_ci"),
        ("mysql:9.7", "utf8mb4_0900_ai_ci"),
    ],
)
def test_a_string_of_the_session_has_the_default_collation_of_its_version(
    name: str, collation: str
) -> None:
    events = run(
        name,
        "set binlog_format=statement, @a='u'",
        "insert into t values(@a)",
        schema="create table t(a varchar(9));",
    )[-1]
    (variable,) = [info for kind, info in events if kind == "User var"]
    assert variable.endswith(f" COLLATE {collation}")


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("mariadb:10.11", "_latin1'v' COLLATE 'latin1_swedish_ci'"),
        ("mariadb:11.8", "_utf8mb4'v' COLLATE 'utf8mb4_uca1400_ai_ci'"),
    ],
)
def test_a_local_string_has_the_character_set_of_its_version(name: str, constant: str) -> None:
    events = run(
        name,
        "call p()",
        schema=(
            "create table t(a varchar(9));\ndelimiter $$\n"
            "create procedure p() begin declare v varchar(9) default 'v';"
            " insert into t values(v); end $$\n"
        ),
    )[-1]
    assert (
        "Query",
        f"use `d`; insert into t values( NAME_CONST('v',{constant}))",
    ) in events


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_numbers_of_binlog_format(flavor: str) -> None:
    schema = "create table t(a int);"
    insert = "insert into t values(1)"
    for number, kind in ((0, "Query"), (1, "Query"), (2, "Table_map")):
        events = run(flavor, f"set binlog_format={number}", insert, schema=schema)[-1]
        assert kind in [one for one, info in events if "BEGIN" not in info and info != "COMMIT"]


@pytest.mark.parametrize(("name", "refused"), [("mysql:8.4", False), ("mysql:9.7", True)])
def test_stock_servers_with_gtids_take_no_mixture_of_engines(name: str, *, refused: bool) -> None:
    rules = Server.parse(name)
    objects = SchemaCatalog(Flavor.MYSQL)
    objects.load(
        "create database d; use d; create table t(a int); create table m(a int) engine=myisam;",
        version=rules.version,
    )
    session = Session(server=rules, objects=objects, database="d")
    session.execute("begin")
    session.execute("insert into t values(1)")
    error = session.execute("insert into m values(1)").error
    assert (error is not None and error.errno == 1785) is refused


def test_password_is_unsafe_where_there_is_one() -> None:
    statement = "insert into t values(password('x'))"
    for name, notes in (("mysql:5.7", ["ER_BINLOG_UNSAFE_SYSTEM_FUNCTION"]), ("mariadb", [])):
        rules = Server.parse(name)
        objects = SchemaCatalog(Flavor(rules.flavor))
        objects.load("create database d; use d; create table t(a varchar(99));")
        session = Session(server=rules, objects=objects, database="d")
        session.execute("set binlog_format=statement")
        assert [note.reason for note in session.execute(statement).notes] == notes


def test_words_of_notes_change_with_the_version() -> None:
    assert "on the slave" in text(Reason.UDF, Server.parse("mysql:8.0.25"))
    assert "on the replica" in text(Reason.UDF, Server.parse("mysql:8.0"))


def test_temporary_tables_of_old_servers_stand_in_a_log_in_mixed_format() -> None:
    made = "create temporary table x(a int)"
    assert run("mysql:5.7", "set binlog_format=mixed", made)[-1]
    assert not run("mysql:8.0", "set binlog_format=mixed", made)[-1]


def test_tables_that_do_not_mix_are_not_locked_together() -> None:
    rules = Server.parse("mysql:9.7")
    objects = SchemaCatalog(Flavor.MYSQL)
    objects.load(
        "create database d; use d; create table t(a int); create table m(a int) engine=myisam;"
        "create table o(a int) engine=myisam;",
        version=rules.version,
    )
    session = Session(server=rules, objects=objects, database="d")
    error = session.execute("lock tables t write, m write").error
    assert error is not None
    assert error.errno == 1785
    for allowed in ("lock tables t write, m read", "lock tables m write, o write"):
        assert session.execute(allowed).error is None


@pytest.mark.parametrize(
    ("name", "column"), [("mariadb:10.11", "uuid DEFAULT NULL"), ("mariadb:11.8", "uuid NOT NULL")]
)
def test_whether_uuid_may_be_null_hangs_on_the_version(name: str, column: str) -> None:
    events = run(name, "set binlog_format=row", "create table t select uuid() u")[-1]
    assert any(f"`u` {column}" in info for _, info in events)


@pytest.mark.parametrize(("name", "value"), [("mariadb:11.8.9", 0), ("mariadb:11.8.6", 1)])
def test_how_options_are_shown_hangs_on_the_version(name: str, value: int) -> None:
    statements = ("set binlog_format=statement, foreign_key_checks=0", "insert into t values(1)")
    events = run(name, *statements, schema="create table t(a int);")[-1]
    shown = f"use `d`; set foreign_key_checks={value}; insert into t values(1)"
    assert ("Query", shown) in events

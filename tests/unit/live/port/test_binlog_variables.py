"""The binlogs' variables: what goes to the source of a statement, and what to the model."""

from __future__ import annotations

import pytest

from binlane.live.port.binlog_variables import (
    TRACKING,
    Rewritten,
    concerns,
    known_of,
    mended,
    question,
    rewrite,
    shown,
    shows,
    tells_gtids,
)
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.results import ColumnDefinition, ResultSet
from binlane.log.codec.types import ColumnType, Flavor
from binlane.statements.policy.server import Server
from binlane.statements.scope.definition import Definition
from binlane.statements.scope.parser import parse_binlog_statement
from binlane.statements.scope.statements import CreateBinlog, create
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.facts import StatementFacts
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect

ANSWERS = {"binlog_row_image": "FULL", "binlog_direct_non_transactional_updates": "OFF"}


def known(name: str, is_global: bool) -> str | None:  # noqa: FBT001  # as `Known` is called
    if name == "binlog_format":
        return "MIXED" if is_global else "STATEMENT"
    if name in TRACKING.values():
        return None if is_global else "OFF"
    return ANSWERS.get(name, "2" if name == "warning_count" else "ON")


def facts_of(text: str, flavor: Flavor = Flavor.MARIADB) -> StatementFacts:
    return read(text, database="d", dialect=Dialect(flavor=flavor.value))


def rewritten(text: str, *, flavor: Flavor = Flavor.MARIADB, temporary: bool = False) -> Rewritten:
    facts = facts_of(text, flavor)
    assert concerns(facts)
    assert question(facts, known) is None
    return rewrite(facts, known, flavor=flavor, has_temporary_tables=temporary)


def _definition(number: int, logging_mode: str) -> Definition:
    parsed = parse_binlog_statement(f"CREATE BINLOG 'b{number}' FORMAT='{logging_mode}'")
    assert isinstance(parsed, CreateBinlog)
    return create(parsed, number, ignores_case=False)


def _session(*modes: str) -> Session:
    return Session(
        server=Server.of("mariadb", "10.11.0"),
        objects=SchemaCatalog(Flavor.MARIADB),
        definitions=[_definition(number, mode) for number, mode in enumerate(modes, 1)],
        logs_source=True,
    )


@pytest.mark.parametrize(
    ("text", "source", "model"),
    [
        (
            "SET binlog_format = ROW",
            "SET binlog_format = ROW",
            "SET binlog_format = 'ROW'",
        ),
        (
            "SET @a = 1, @@session.sql_log_bin:=0, autocommit=1",
            "SET @a = 1, @@session.sql_log_bin:= ON, autocommit=1",
            "SET @a = 1, @@session.sql_log_bin:= 'OFF', autocommit=1",
        ),
        (
            "SET LOCAL `binlog_format`='mixed', sql_log_bin=TRUE",
            "SET LOCAL `binlog_format`= ROW, sql_log_bin= ON",
            "SET LOCAL `binlog_format`= 'MIXED', sql_log_bin= 'ON'",
        ),
        (
            "/*!40101 SET SQL_LOG_BIN= 0 */",
            "/*!40101 SET SQL_LOG_BIN= ON */",
            "/*!40101 SET SQL_LOG_BIN= 'OFF' */",
        ),
        (
            "SET STATEMENT binlog_format=ROW FOR INSERT INTO t VALUES (1)",
            "SET STATEMENT binlog_format= ROW FOR INSERT INTO t VALUES (1)",
            "SET STATEMENT binlog_format= 'ROW' FOR INSERT INTO t VALUES (1)",
        ),
        (
            "SET @old = @@binlog_format, autocommit = 0",
            "SET @old = 'STATEMENT', autocommit = 0",
            "SET @old = 'STATEMENT', autocommit = 0",
        ),
        (
            "SELECT @@binlog_format, @@sql_log_bin n FROM t WHERE a = @@SESSION.sql_log_bin",
            "SELECT 'STATEMENT' AS `@@binlog_format`, 1 n FROM t WHERE a = 1",
            None,
        ),
        (
            "SELECT CONCAT(@@global.binlog_format, 'x')",
            "SELECT CONCAT('MIXED', 'x') AS `CONCAT(@@global.binlog_format, 'x')`",
            None,
        ),
        (
            "SELECT @@warning_count",
            "SELECT (@@warning_count + 2) AS `@@warning_count`",
            None,
        ),
        ("INSERT INTO t VALUES (@@binlog_format)", "INSERT INTO t VALUES ('STATEMENT')", None),
    ],
)
def test_a_statement_that_changes_nothing_at_the_source(
    text: str, source: str, model: str | None
) -> None:
    assert rewritten(text) == Rewritten(source=source, model=model or text)


@pytest.mark.parametrize(
    "text",
    [
        "SET binlog_format = 'bogus'",
        "SET binlog_format = 3",
        "SET binlog_format = '1'",
        "SET sql_log_bin = 'ROW '",
        "SET sql_log_bin = 2",
        "SET GLOBAL sql_log_bin = 0",
    ],
)
def test_what_the_source_refuses_it_refuses_by_itself(text: str) -> None:
    assert rewritten(text) == Rewritten(source=text, model=text)


def test_values_for_sessions_that_begin_later() -> None:
    told = rewritten("SET GLOBAL binlog_format=STATEMENT, binlog_row_image=DEFAULT")
    assert told.source == (
        "SET GLOBAL binlog_format= @@GLOBAL.binlog_format,"
        " binlog_row_image= @@GLOBAL.binlog_row_image"
    )
    assert told.global_values == {"binlog_format": "STATEMENT", "binlog_row_image": None}


def test_an_expression_is_asked_for() -> None:
    facts = facts_of("SET binlog_format = @old, sql_log_bin = @@sql_log_bin - 1, @x = @y")
    assert question(facts, known) == "SELECT (@old), (1 - 1) LIMIT 1"
    heads = (
        ColumnDefinition(name="a"),
        ColumnDefinition(name="b", type_code=ColumnType.LONGLONG),
    )
    answer = ResultSet(("a", "b"), ((b"row", b"0"),), ServerStatus.AUTOCOMMIT, heads)
    told = rewrite(facts, known, answer, flavor=Flavor.MARIADB)
    assert told.model == "SET binlog_format = 'ROW', sql_log_bin = 'OFF', @x = @y"
    assert told.source == ("SET binlog_format = ROW, sql_log_bin = ON, @x = @y")


@pytest.mark.parametrize("kind", [ColumnType.NEWDECIMAL, ColumnType.DOUBLE])
def test_an_expression_of_a_type_that_no_variable_takes(kind: ColumnType) -> None:
    text = "SET binlog_format = 1 + 0.0"
    answer = ResultSet(
        ("a",), ((b"1",),), ServerStatus.AUTOCOMMIT, (ColumnDefinition(name="a", type_code=kind),)
    )
    told = rewrite(facts_of(text), known, answer, flavor=Flavor.MARIADB)
    assert told == Rewritten(source=text, model=text)


def test_mysql_warns_of_a_format_that_is_read() -> None:
    told = rewritten("SELECT @@binlog_format, @@sql_log_bin n", flavor=Flavor.MYSQL)
    assert told.source == (
        "SELECT CONCAT('STATEMENT', LEFT(@@binlog_format, 0)) AS `@@binlog_format`, 1 n"
    )


def test_mysql_sets_no_format_while_there_are_temporary_tables() -> None:
    told = rewritten("SET SESSION binlog_format='ROW'", flavor=Flavor.MYSQL, temporary=True)
    assert told.source == "SET @@SESSION.binlog_row_image = @@SESSION.binlog_row_image"
    assert told.model == "SET SESSION binlog_format= 'ROW'"


@pytest.mark.parametrize(
    ("value", "image"), [("MINIMAL", "MINIMAL"), ("0", "MINIMAL"), ("'noblob'", "NOBLOB")]
)
@pytest.mark.parametrize("flavor", list(Flavor))
def test_the_source_stays_at_full_images(value: str, image: str, flavor: Flavor) -> None:
    told = rewritten(f"SET binlog_row_image = {value}", flavor=flavor)
    assert told.source == "SET binlog_row_image = FULL"
    assert told.model == f"SET binlog_row_image = '{image}'"


@pytest.mark.parametrize(
    ("flavor", "version", "is_taken"),
    [
        ("mariadb", (10, 11, 19), False),
        ("mariadb", (11, 4, 5), True),
        ("mariadb", (11, 8, 6), True),
        ("mysql", (9, 7, 4), False),
    ],
)
def test_full_nodup_is_of_some_servers(
    flavor: str, version: tuple[int, int, int], *, is_taken: bool
) -> None:
    for value in ("FULL_NODUP", "3"):
        text = f"SET binlog_row_image = {value}"
        facts = read(text, database="d", dialect=Dialect(flavor=flavor, version=version))
        told = rewrite(facts, known, flavor=Flavor(flavor))
        assert (told.source != text) == is_taken
        assert (told.model == "SET binlog_row_image = 'FULL_NODUP'") == is_taken


def test_the_session_goes_on_telling_its_gtids() -> None:
    name = "session_track_system_variables"
    assert rewritten(f"SET {name} = 'autocommit'").source == (
        f"SET {name} = IF(('autocommit') = '*', '*',"
        " CONCAT_WS(',', NULLIF(('autocommit'), ''), 'last_gtid'))"
    )
    told = rewritten("SET session_track_gtids = own_gtid", flavor=Flavor.MYSQL)
    assert told.source == "SET session_track_gtids = @@SESSION.session_track_gtids"
    assert told.tracking == "OWN_GTID"
    assert rewritten("SET session_track_gtids = 3", flavor=Flavor.MYSQL).tracking is None
    facts = facts_of(f"SET {name} = DEFAULT")
    assert question(facts, known) == f"SELECT @@GLOBAL.{name} LIMIT 1"


@pytest.mark.parametrize(
    ("tracking", "tells"),
    [
        *(("OFF", False), ("OWN_GTID", True), ("ALL_GTIDS", True)),
        *(("", False), ("autocommit,sql_mode", False), ("Last_GTID, sql_mode", True), ("*", True)),
    ],
)
def test_who_wants_to_be_told_gtids(tracking: str, *, tells: bool) -> None:
    assert tells_gtids(tracking) is tells


def test_a_client_reads_what_it_has_set() -> None:
    told = rewritten("SELECT @@session_track_gtids", flavor=Flavor.MYSQL)
    assert told.source == "SELECT 'OFF' AS `@@session_track_gtids`"
    facts = facts_of("SHOW VARIABLES")
    name = b"session_track_system_variables"
    heads = (ColumnDefinition(name="Variable_name"), ColumnDefinition(name="Value"))
    rows = ((name, b"autocommit,last_gtid,sql_mode"),)
    result = ResultSet(("Variable_name", "Value"), rows, ServerStatus.AUTOCOMMIT, heads)
    answer = shown(facts, result, known_of(_session(), tracking="sql_mode,autocommit"))
    assert answer.rows == [(name, b"autocommit,sql_mode")]
    assert shown(facts, result, known_of(_session())).rows == list(rows)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "SET autocommit = 0",
        "CREATE VIEW v AS SELECT @@binlog_format",
        "SHOW TABLES",
        # A session may choose its GTIDs, which it is told all the same.
        "SET gtid_next = 'AUTOMATIC'",
        "SET SESSION server_id = 7",
        "SET STATEMENT gtid_domain_id = 7 FOR INSERT INTO t VALUES (1)",
    ],
)
def test_other_statements_go_as_they_are(text: str) -> None:
    assert not concerns(facts_of(text))
    assert not shows(facts_of(text))


def test_shown_values_are_the_binlogs() -> None:
    facts = facts_of("SHOW VARIABLES LIKE '%bin%'")
    assert shows(facts)
    heads = (ColumnDefinition(name="Variable_name"), ColumnDefinition(name="Value"))
    rows = ((b"binlog_format", b"ROW"), (b"log_bin", b"ON"), (b"sql_log_bin", b"ON"))
    result = ResultSet(("Variable_name", "Value"), rows, ServerStatus.AUTOCOMMIT, heads)
    assert [tuple(row) for row in shown(facts, result, known).rows] == [
        (b"binlog_format", b"STATEMENT"),
        (b"log_bin", b"ON"),
        (b"sql_log_bin", b"ON"),
    ]
    everywhere = facts_of("SHOW GLOBAL VARIABLES")
    assert shown(everywhere, result, known).rows[0][1] == b"MIXED"


def test_values_of_a_session() -> None:
    session = _session("STATEMENT", "STATEMENT")
    values = known_of(session)
    assert values("binlog_format", False) == "STATEMENT"
    assert values("sql_log_bin", False) == "ON"
    session.execute("SET sql_log_bin = 0, binlog_format = ROW")
    assert values("sql_log_bin", False) == "OFF"
    assert values("binlog_format", False) == "ROW"
    assert values("binlog_format", True) == "STATEMENT"
    session.execute("SET SESSION binlog_format = DEFAULT")
    assert values("binlog_format", False) == "STATEMENT"
    assert known_of(_session("STATEMENT", "ROW"))("binlog_format", False) == "MIXED"
    assert known_of(_session())("binlog_format", False) == "ROW"


def test_a_session_begins_with_global_values() -> None:
    session = _session("STATEMENT", "ROW")
    session.begin_with({"binlog_format": "ROW", "binlog_direct_non_transactional_updates": "ON"})
    values = known_of(session)
    assert values("binlog_format", False) == values("binlog_format", True) == "ROW"
    assert values("binlog_direct_non_transactional_updates", False) == "ON"
    assert session.logs_rows_alone
    session.execute("SET SESSION binlog_format = STATEMENT")
    session.execute("SET SESSION binlog_format = DEFAULT")
    assert session.logs_rows_alone


def test_a_session_goes_on_with_what_it_set() -> None:
    before = _session("STATEMENT", "ROW")
    before.begin_with({"binlog_format": "ROW"})
    before.execute("SET SESSION binlog_format = MIXED, sql_log_bin = 0")
    session = _session("STATEMENT", "ROW")
    session.begin_with({"binlog_format": "ROW"}, before)
    values = known_of(session)
    assert (values("binlog_format", False), values("binlog_format", True)) == ("MIXED", "ROW")
    assert values("sql_log_bin", False) == "OFF"
    again = _session("STATEMENT", "ROW")
    again.begin_with({}, _session("ROW"))
    assert not again.logs_rows_alone


def test_a_source_that_logs_otherwise_is_told() -> None:
    full = {"binlog_format": "ROW", "binlog_row_image": "FULL", "sql_log_bin": "ON"}
    assert mended(full) is None
    assert mended(full | {"binlog_format": "MIXED", "sql_log_bin": "OFF"}) == (
        "SET SESSION binlog_format = ROW, sql_log_bin = ON"
    )


@pytest.mark.parametrize(
    "text",
    [
        "EXECUTE IMMEDIATE 'SET binlog_format = ROW'",
        "BEGIN NOT ATOMIC SET sql_log_bin = 0; END",
    ],
)
def test_no_program_changes_how_the_source_logs(text: str) -> None:
    error = _session("ROW").execute(text).error
    assert error is not None
    assert error.symbol == "BINLANE_SET_IN_PROGRAM"

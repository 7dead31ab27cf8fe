"""Seed 000 through `check`: its own examples, and what they mean for everything between."""

from __future__ import annotations

import pytest

from binlane.statements.policy.refusals import Refusal
from binlane.statements.session.report import StatementResult
from tests.checked import SCHEMA, check, results, short

PREFIX = "[11314] This statement cannot be replicated safely: "
BINNY = "CREATE BINLOG 'binny' LOG(`test`.`foo`);"
SERVERS = ["mariadb", "mysql"]


def _refusal(result: StatementResult) -> Refusal:
    assert result.error is not None
    return result.error


def _last(script: str, binlogs: str, **more: str) -> StatementResult:
    """The last statement's result; none before it may be refused."""
    *before, last = check(script, binlogs=binlogs, **more)
    assert [one.statement.sql for one in before if one.result.error] == []
    assert last.result.unanalysed is None
    return last.result


def _logged(script: str, binlogs: str, **more: str) -> dict[str, str]:
    """How each binlog logs the last statement, which none refuses."""
    result = _last(script, binlogs, **more)
    assert result.error is None, result.error
    return {
        name: "none" if one.logged_as is None else one.logged_as.value
        for name, one in result.binlogs.items()
    }


@pytest.mark.rule("000:partial-write")
@pytest.mark.rule("000:partial-write-text")
@pytest.mark.rule("000:partial-write-update")
@pytest.mark.rule("000:partial-write-delete")
@pytest.mark.rule("000:partial-write-drop")
@pytest.mark.rule("000:not-mysql-partial-rows")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("logging_format", ["ROW", "STATEMENT", "MIXED"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE test.foo JOIN test.bar ON (f = b) SET f = 2, b = 2 WHERE b = 1",
        "DELETE test.foo.*, test.bar.* FROM test.foo JOIN test.bar ON (f = b) WHERE b = 3",
        "DROP TABLE test.foo, test.bar",
    ],
)
def test_the_seeds_partial_writes(server: str, logging_format: str, statement: str) -> None:
    binlogs = f"{BINNY} ALTER BINLOG binny FORMAT='{logging_format}'; CREATE BINLOG 'all';"
    inserts = "INSERT INTO test.foo VALUES (1, ''), (3, ''); INSERT INTO test.bar VALUES (1, '');"
    result = _last(f"{inserts} {statement};", binlogs, server=server)
    refusal = _refusal(result)
    assert refusal.message == (
        PREFIX + "binlogs {binny} do not log both `test`.`foo` and `test`.`bar`"
    )
    assert (refusal.errno, refusal.sqlstate) == (1, "HY000")
    assert (refusal.symbol, refusal.binlogs) == ("BINLANE_PARTIAL_WRITE", ("binny",))
    assert {why.what for why in refusal.why} == {"test.foo", "test.bar"}
    assert any(why.hint == "ALTER BINLOG 'binny' ADD LOG(`test`.`bar`)" for why in refusal.why)
    assert all(not one.events for one in result.binlogs.values())


@pytest.mark.rule("000:dependency")
@pytest.mark.rule("000:dependency-text")
@pytest.mark.rule("000:dependency-insert-select")
@pytest.mark.rule("000:dependency-update-join")
@pytest.mark.rule("000:dependency-delete-join")
@pytest.mark.rule("000:dependency-row")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO test.foo SELECT * FROM test.bar",
        "UPDATE test.foo JOIN test.bar ON (f = b) SET f = 2 WHERE b = 1",
        "DELETE test.foo.* FROM test.foo JOIN test.bar ON (f = b) WHERE b = 3",
    ],
)
def test_the_seeds_dependencies(server: str, statement: str) -> None:
    by_statement = f"{BINNY} ALTER BINLOG binny FORMAT='STATEMENT';"
    refusal = _refusal(_last(statement, by_statement, server=server))
    assert refusal.message == (
        PREFIX + "binlog binny does not log `test`.`bar`, "
        "consequently the statement might not replay correctly"
    )
    assert refusal.symbol == "BINLANE_DEPENDENCY"
    why = refusal.why[0]
    assert why.what == "test.bar"
    assert statement[why.offset : why.offset + why.length].endswith("bar")
    assert _logged(statement, BINNY, server=server) == {"binny": "row"}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("statement", "before"),
    [
        ("INSERT INTO test.foo SELECT * FROM test.bar", ""),
        ("UPDATE test.foo JOIN test.bar ON (f = b) SET f = 2 WHERE b = 1", ""),
        (
            "INSERT INTO test.foo VALUES (1, '')",
            "CREATE TRIGGER test.g BEFORE INSERT ON test.foo FOR EACH ROW SET NEW.f = 1;",
        ),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE test.foo", ""),
    ],
)
def test_what_a_text_could_not_be_is_rows_in_mixed(
    server: str, statement: str, before: str
) -> None:
    mixed = f"{BINNY} ALTER BINLOG binny FORMAT='MIXED'; CREATE BINLOG 'all' FORMAT='MIXED';"
    found = _logged(before + statement, mixed, server=server)
    others = "row" if statement.startswith("LOAD") else "statement"
    assert found["binny"] == "row"
    assert found["all"] in (others, "row")
    alone = mixed.replace(BINNY, "CREATE BINLOG 'binny';")
    if others == "statement":
        assert _logged(before + statement, alone, server=server)["binny"] == found["all"]


@pytest.mark.rule("000:partial-transaction")
@pytest.mark.rule("000:partial-transaction-text")
@pytest.mark.rule("000:transaction-writes-only")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("logging_format", ["ROW", "STATEMENT"])
def test_the_seeds_transactions(server: str, logging_format: str) -> None:
    binlogs = f"{BINNY} ALTER BINLOG binny FORMAT='{logging_format}';"
    crossing = (
        "BEGIN; INSERT INTO test.foo VALUES (1, ''), (3, ''); INSERT INTO test.bar VALUES (1, '');"
    )
    refusal = _refusal(_last(crossing, binlogs, server=server))
    assert refusal.message == (
        PREFIX + "binlogs {binny} only record some of the changes made by the transaction"
    )
    assert refusal.symbol == "BINLANE_PARTIAL_TRANSACTION"
    whole = (
        "BEGIN; SELECT * FROM test.bar; INSERT INTO test.foo VALUES (1, '');"
        "SELECT COUNT(*) FROM test.foo; UPDATE test.foo SET f = 3 WHERE f = 2; COMMIT;"
    )
    events = short(_last(whole, binlogs, server=server).binlogs["binny"].events)
    assert events[0] == "BEGIN"
    assert events[-1] == "XID"
    if logging_format == "STATEMENT":
        assert events[1:-1] == [
            "INSERT INTO test.foo VALUES (1, '')",
            "UPDATE test.foo SET f = 3 WHERE f = 2",
        ]


FOO, BAR = "INSERT INTO foo VALUES (1, '');", "INSERT INTO bar VALUES (1, '');"


@pytest.mark.parametrize(
    "script, is_refused",
    [
        (f"BEGIN; {FOO} COMMIT; {BAR}", False),
        (f"BEGIN; {FOO} ROLLBACK; {BAR}", False),
        (f"{FOO} {BAR}", False),
        (f"BEGIN; {FOO} CREATE TABLE z (a INT); {BAR}", False),
        (f"BEGIN; {FOO} DROP TABLE bar;", False),
        (f"SET autocommit = 0; {FOO} {BAR}", True),
        (f"BEGIN; {FOO} SAVEPOINT s; COMMIT; BEGIN; {BAR}", False),
        (f"BEGIN; SAVEPOINT s; {FOO} ROLLBACK TO s; {BAR}", False),
        (f"BEGIN; {FOO} SAVEPOINT s; ROLLBACK TO s; {BAR}", True),
        (f"BEGIN; SAVEPOINT s; INSERT INTO nbar VALUES (1, ''); ROLLBACK TO s; {FOO}", True),
        (f"XA START 'x'; {FOO} {BAR}", True),
        (f"BEGIN; {FOO} UPDATE bar SET b = 1 WHERE b > 7;", True),
    ],
)
@pytest.mark.rule("000:partial-transaction")
def test_what_belongs_to_a_transaction(script: str, *, is_refused: bool) -> None:
    result = _last(script, BINNY)
    assert (result.error is not None) is is_refused


def test_a_refused_statement_leaves_no_trace() -> None:
    script = "BEGIN; INSERT INTO foo VALUES (1,''); DROP TABLE foo, bar; ROLLBACK;"
    refused, rolled_back = results(script, binlogs=BINNY)[2:]
    assert refused.error is not None
    assert rolled_back.error is None
    assert rolled_back.binlogs["binny"].events == ()
    *_, select = results(f"{script} SELECT * FROM foo;", binlogs=BINNY)
    assert select.error is None


MORE = (
    SCHEMA
    + """
CREATE VIEW views.vbar AS SELECT * FROM test.bar;
CREATE VIEW test.vfoo AS SELECT * FROM test.foo;
CREATE TABLE parent (a INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES parent (a) ON DELETE CASCADE) ENGINE=InnoDB;
CREATE TABLE triggered (a INT) ENGINE=InnoDB;
CREATE TRIGGER audit AFTER INSERT ON triggered FOR EACH ROW INSERT INTO bar VALUES (NEW.a, '');
DELIMITER //
CREATE FUNCTION writes_bar() RETURNS INT BEGIN INSERT INTO bar VALUES (1, ''); RETURN 1; END //
CREATE FUNCTION reads_bar() RETURNS INT RETURN (SELECT MAX(b) FROM bar) //
CREATE PROCEDURE both_of_them()
BEGIN INSERT INTO foo VALUES (1, ''); INSERT INTO bar VALUES (1, ''); END //
DELIMITER ;
"""
)


@pytest.mark.parametrize(
    "scope, statement, objects, through",
    [
        (
            "foo",
            "UPDATE foo, views.vbar SET f = 1, b = 1",
            {"test.foo", "test.bar"},
            "view views.vbar",
        ),
        (
            "triggered",
            "INSERT INTO triggered VALUES (1)",
            {"test.triggered", "test.bar"},
            "trigger test.audit",
        ),
        ("parent", "DELETE FROM parent", {"test.parent", "test.child"}, "foreign key test.child"),
        (
            "foo",
            "INSERT INTO foo VALUES (writes_bar(), '')",
            {"test.foo", "test.bar"},
            "function test.writes_bar",
        ),
    ],
)
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.rule("000:partial-write")
def test_writes_that_the_text_does_not_name(
    scope: str, statement: str, objects: set[str], through: str, server: str
) -> None:
    binlogs = f"CREATE BINLOG b LOG(test.{scope})"
    refusal = _refusal(_last(statement, binlogs, schema=MORE, server=server))
    assert refusal.symbol == "BINLANE_PARTIAL_WRITE"
    assert {why.what for why in refusal.why} == objects
    assert any(through in why.through for why in refusal.why)


@pytest.mark.parametrize("server", SERVERS)
def test_a_procedure_that_crosses_the_edge(server: str) -> None:
    assert _refusal(
        _last("BEGIN; CALL both_of_them();", BINNY, schema=MORE, server=server)
    ).symbol == ("BINLANE_PARTIAL_TRANSACTION")
    assert _last("CALL both_of_them();", BINNY, schema=MORE, server=server).error is None


@pytest.mark.rule("000:view-writes")
@pytest.mark.parametrize(
    "statement, missing, through",
    [
        ("INSERT INTO bar SELECT f, x FROM vfoo", None, ()),
        ("INSERT INTO foo SELECT b, x FROM views.vbar", "views.vbar", ()),
        ("INSERT INTO foo VALUES (reads_bar(), '')", None, ()),
        ("CREATE VIEW v AS SELECT * FROM views.vbar", "views.vbar", ()),
        ("CREATE TABLE z LIKE baz.bar", "baz.bar", ()),
        ("CREATE TABLE z (b INT, FOREIGN KEY (b) REFERENCES baz.bar (b))", "baz.bar", ()),
        ("CREATE PROCEDURE p() DELETE FROM baz.bar", None, ()),
    ],
)
def test_what_a_replay_needs(statement: str, missing: str | None, through: tuple[str, ...]) -> None:
    binlogs = "CREATE BINLOG b LOG(test), FORMAT='STATEMENT'"
    result = _last(statement, binlogs, schema=MORE)
    if missing is None:
        assert result.error is None
        return
    refusal = _refusal(result)
    assert refusal.symbol == "BINLANE_DEPENDENCY"
    assert refusal.why[0].what == missing
    assert refusal.why[0].through == through


@pytest.mark.rule("000:table-scope-triggers")
def test_triggers_of_a_table_scope() -> None:
    statement = "INSERT INTO triggered VALUES (1)"
    binlogs = "CREATE BINLOG b LOG(test.triggered, test.bar), FORMAT='{}'"
    refusal = _refusal(_last(statement, binlogs.format("STATEMENT"), schema=MORE))
    assert refusal.symbol == "BINLANE_TABLE_SCOPE_TRIGGER"
    assert refusal.why[0].what == "test.audit"
    assert _logged(statement, binlogs.format("ROW"), schema=MORE) == {"b": "row"}
    create = "CREATE TRIGGER more AFTER DELETE ON triggered FOR EACH ROW DELETE FROM bar"
    refusal = _refusal(_last(create, binlogs.format("STATEMENT"), schema=MORE))
    assert refusal.symbol == "BINLANE_TABLE_SCOPE_TRIGGER"
    assert _logged(create, binlogs.format("ROW"), schema=MORE) == {"b": "statement"}


@pytest.mark.rule("000:load-data-statement")
def test_load_data() -> None:
    load = "LOAD DATA INFILE 'x' INTO TABLE foo"
    binlogs = "CREATE BINLOG b LOG(test), FORMAT='STATEMENT'"
    assert _refusal(_last(load, binlogs)).symbol == "BINLANE_LOAD_DATA"
    switched = f"SET SESSION binlog_format = 'ROW'; {load}"
    assert _logged(switched, binlogs) == {"b": "row"}
    assert _logged(load, "CREATE BINLOG b FORMAT='STATEMENT'") == {"b": "statement"}


@pytest.mark.rule("000:routine-statement")
@pytest.mark.rule("000:routine-row")
def test_procedures_in_table_scope() -> None:
    schema = MORE + "CREATE PROCEDURE fill() INSERT INTO foo VALUES (1, '');"
    binlogs = "".join(
        f"CREATE BINLOG {name}_{mode} LOG({scope}), FORMAT='{mode}';"
        for name, scope in (("table", "test.foo"), ("whole", "test"))
        for mode in ("STATEMENT", "ROW")
    )
    assert _logged("CALL fill()", binlogs, schema=schema) == {
        "table_STATEMENT": "none",
        "table_ROW": "row",
        "whole_STATEMENT": "statement",
        "whole_ROW": "row",
    }


@pytest.mark.rule("000:accounts")
@pytest.mark.rule("000:accounts-scope")
@pytest.mark.rule("000:accounts-grant-objects")
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE USER 'example'@'%'",
        "RENAME USER 'root'@'localhost' TO 'example1'@'localhost'",
        "GRANT ALL ON *.* TO 'root'@'localhost' WITH GRANT OPTION",
        "GRANT ALL ON test.foo TO 'root'@'localhost'",
        "REVOKE ALL PRIVILEGES, GRANT OPTION FROM 'root'@'localhost'",
        "DROP USER 'root'@'localhost'",
    ],
)
def test_accounts(statement: str) -> None:
    binlogs = """
        CREATE BINLOG 'b1'; CREATE BINLOG 'b2' IGNORE(`test`); CREATE BINLOG 'b3' LOG(`system`);
        CREATE BINLOG 'b4' LOG(test); CREATE BINLOG 'b5' IGNORE(`system`);
        CREATE BINLOG 'b6' LOG(test.foo);
    """
    found = _logged(statement, binlogs)
    assert [name for name, how in found.items() if how == "statement"] == ["b1", "b2", "b3"]
    assert {found[name] for name in ("b4", "b5", "b6")} == {"none"}


@pytest.mark.rule("000:writes-in-scope")
@pytest.mark.rule("000:logged-by-all")
@pytest.mark.rule("000:default-database")
@pytest.mark.rule("000:same-for-both-formats")
@pytest.mark.rule("000:multi-table-all-in")
@pytest.mark.rule("000:create-format")
@pytest.mark.parametrize("logging_format", ["ROW", "STATEMENT"])
def test_each_binlog_gets_what_is_in_its_scope(logging_format: str) -> None:
    binlogs = "".join(
        f"CREATE BINLOG {name} {lists} FORMAT='{logging_format}';"
        for name, lists in (
            ("b1", "LOG(`test`.`foo`, `test`.`bar`),"),
            ("b2", "LOG(`test`),"),
            ("b3", ""),
            ("b4", "IGNORE(`baz`),"),
            ("b5", "IGNORE(`baz`.`bar`),"),
            ("b6", "LOG(`baz`),"),
        )
    )
    how = logging_format.lower()
    inside = {"b1": how, "b2": how, "b3": how, "b4": how, "b5": how, "b6": "none"}
    assert _logged("USE baz; INSERT INTO test.foo VALUES (1, '');", binlogs) == inside
    update = "UPDATE test.foo, test.bar SET foo.f = 2, bar.b = 2 WHERE f = b AND f = 1"
    assert _logged(update, binlogs) == inside


@pytest.mark.rule("000:empty-scope")
def test_an_emptied_scope_logs_nothing() -> None:
    binlogs = "CREATE BINLOG b LOG(test); ALTER BINLOG b DROP LOG(test); CREATE BINLOG c;"
    assert _logged("INSERT INTO foo VALUES (1, '')", binlogs) == {"b": "none", "c": "row"}


# -- Temporary tables: the seed's examples, statement by statement

PERM = "CREATE TABLE perm (id INT PRIMARY KEY);"
TEMP = "CREATE TEMPORARY TABLE temp (id INT PRIMARY KEY);"
ON_STATEMENT = "SET SESSION binlog_format = 'STATEMENT';"
ON_ROW = "SET SESSION binlog_format = 'ROW';"


def _walk(script: str, binlogs: str, binlog: str, server: str) -> list[list[str]]:
    """Per statement what one binlog gets, in short; a refusal as its symbol."""
    return [
        [result.error.symbol] if result.error else short(result.binlogs[binlog].events)
        for result in results(script, binlogs=binlogs, server=server)
    ]


def _texts(walked: list[list[str]]) -> list[str]:
    """The statement in each step, without BEGIN and its end."""
    left = [[one for one in step if one not in ("BEGIN", "XID", "COMMIT")] for step in walked]
    return ["; ".join(step) for step in left]


@pytest.mark.rule("000:temporary-statement")
@pytest.mark.rule("001:statement-temporary")
@pytest.mark.parametrize("server", SERVERS)
def test_example_1_statement_format_logs_temporary_tables(server: str) -> None:
    script = (
        f"{PERM} {TEMP} INSERT INTO temp VALUES (1), (2), (3); INSERT INTO perm SELECT * FROM temp;"
    )
    logged = _texts(_walk(script, "CREATE BINLOG bin FORMAT='STATEMENT'", "bin", server))
    assert logged == [statement.strip() for statement in script.split(";") if statement.strip()]


@pytest.mark.rule("000:temporary-row")
@pytest.mark.rule("004:R-log-row-format-temporary")
@pytest.mark.parametrize("server", SERVERS)
def test_example_1_in_row_format(server: str) -> None:
    script = (
        f"{PERM} {TEMP} INSERT INTO temp VALUES (1), (2), (3); INSERT INTO perm SELECT * FROM temp;"
        "DROP TEMPORARY TABLE temp;"
    )
    logged = _texts(_walk(script, "CREATE BINLOG bin", "bin", server))
    assert logged[1:3] == ["", ""]
    assert logged[3] == "map test.perm; rows"
    assert logged[4] == ""


@pytest.mark.rule("000:temporary-stopped")
@pytest.mark.rule("000:temporary-stays-stopped")
@pytest.mark.rule("000:temporary-stopped-read")
@pytest.mark.parametrize("server", SERVERS)
def test_example_2_what_was_missed_cannot_be_used(server: str) -> None:
    script = (
        f"{PERM} {TEMP} INSERT INTO temp VALUES (1), (2), (3); {ON_ROW}"
        f"INSERT INTO temp VALUES (4), (5), (6); {ON_STATEMENT}"
        "INSERT INTO perm SELECT * FROM temp;"
    )
    logged = _texts(_walk(script, "CREATE BINLOG bin FORMAT='STATEMENT'", "bin", server))
    assert logged[1:] == [
        "CREATE TEMPORARY TABLE temp (id INT PRIMARY KEY)",
        "INSERT INTO temp VALUES (1), (2), (3)",
        "",
        "",
        "",
        "BINLANE_DEPENDENCY",
    ]
    again = f"{script} INSERT INTO temp VALUES (7);"
    assert not _texts(_walk(again, "CREATE BINLOG bin FORMAT='STATEMENT'", "bin", server))[-1]


@pytest.mark.rule("000:temporary-drop")
@pytest.mark.parametrize("server", SERVERS)
def test_example_3_the_drop_is_logged_in_row_format(server: str) -> None:
    script = (
        f"{ON_STATEMENT} {TEMP} INSERT INTO temp VALUES (1), (2), (3); {ON_ROW}"
        "INSERT INTO temp VALUES (4), (5), (6); DROP TEMPORARY TABLE temp;"
    )
    logged = _texts(_walk(script, "CREATE BINLOG bin", "bin", server))
    assert logged[1:5] == [
        "CREATE TEMPORARY TABLE temp (id INT PRIMARY KEY)",
        "INSERT INTO temp VALUES (1), (2), (3)",
        "",
        "",
    ]
    assert logged[5].upper().startswith("DROP TEMPORARY TABLE ")


@pytest.mark.rule("000:temporary-stopped")
@pytest.mark.rule("000:temporary-drop-out-of-scope")
@pytest.mark.parametrize("server", SERVERS)
def test_example_4_the_drop_is_logged_out_of_scope(server: str) -> None:
    script = (
        "CREATE TEMPORARY TABLE test.foo (f INT PRIMARY KEY); INSERT INTO foo VALUES (1), (2), (3);"
        "ALTER BINLOG bin LOG(test.bar); INSERT INTO foo VALUES (4), (5), (6);"
        "DROP TEMPORARY TABLE foo;"
    )
    define = "CREATE BINLOG bin LOG(test.foo), FORMAT='STATEMENT';"
    logged = _texts(_walk(script, define, "bin", server))
    assert logged[:4] == [
        "CREATE TEMPORARY TABLE test.foo (f INT PRIMARY KEY)",
        "INSERT INTO foo VALUES (1), (2), (3)",
        "",
        "",
    ]
    assert logged[4].upper().startswith("DROP TEMPORARY TABLE ")


@pytest.mark.rule("000:temporary-drop-artificial")
@pytest.mark.parametrize("server", SERVERS)
def test_example_5_the_end_of_a_session_drops(server: str) -> None:
    script = f"{TEMP}\n-- @disconnect\nSELECT 1;"
    logged = _texts(_walk(script, "CREATE BINLOG bin FORMAT='STATEMENT'", "bin", server))
    assert "TEMPORARY" in logged[-1]
    assert logged[-1].startswith("DROP ")
    assert "IF EXISTS `temp`" in logged[-1]


@pytest.mark.rule("000:temporary-partial-write")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    "statement", ["UPDATE foo, temp SET f = 1, id = 1", "DROP TABLE foo, temp"]
)
def test_a_temporary_and_a_permanent_table_at_once(server: str, statement: str) -> None:
    refusal = _refusal(_last(f"{TEMP} {statement};", "CREATE BINLOG bin", server=server))
    assert refusal.message == (
        PREFIX + "binlogs {bin} do not log both `test`.`foo` and `test`.`temp`"
    )
    by_statement = "CREATE BINLOG bin FORMAT='STATEMENT'"
    assert _last(f"{TEMP} {statement};", by_statement, server=server).error is None


def test_without_definitions_there_is_no_safety_of_scopes() -> None:
    script = f"{TEMP} UPDATE foo, temp SET f = 1, id = 1;"
    assert all(one.error is None for one in results(script))

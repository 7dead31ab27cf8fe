"""Programs whose way hangs on data: what is unsafe on any of their ways is found."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog

TABLES = """
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(50)) ENGINE=InnoDB;
CREATE TABLE u (a INT, b VARCHAR(50)) ENGINE=InnoDB;
CREATE TABLE v (a INT) ENGINE=InnoDB;
"""
SYSTEM_FUNCTION = "ER_BINLOG_UNSAFE_SYSTEM_FUNCTION"
LIMIT = "ER_BINLOG_UNSAFE_LIMIT"
UNSAFE = "INSERT INTO u VALUES (1, UUID())"


def session(program: str = "", flavor: str = "mariadb", mode: str = "STATEMENT") -> Session:
    catalog = SchemaCatalog(Flavor(flavor))
    catalog.load(f"{TABLES}DELIMITER //\n{program}//\n" if program else TABLES)
    made = Session(server=Server.parse(flavor), objects=catalog, database="d")
    made.execute(f"SET SESSION binlog_format = {mode}")
    return made


def call(body: str, arguments: str = "", parameters: str = "", **options: str) -> StatementResult:
    made = session(f"CREATE PROCEDURE p({parameters}) {body}", **options)
    return made.execute(f"CALL p({arguments})")


def notes(result: StatementResult) -> dict[str, bool]:
    """The unsafe reasons, and whether they hold on some ways only."""
    return {note.reason: note.on_some_ways for note in result.notes}


def texts(result: StatementResult) -> list[str]:
    """The statements that are logged on the first way."""
    events = result.binlogs["binlog"].events
    return [info.partition("; ")[2] for kind, info in events if kind == "Query" and "; " in info]


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_what_stands_behind_a_guard_is_found(flavor: str) -> None:
    guard = "q: BEGIN IF (SELECT COUNT(*) FROM u) = 0 THEN LEAVE q; END IF;"
    found = call(f"{guard} UPDATE t SET b = UUID() LIMIT 1; END", flavor=flavor)
    assert notes(found) == {SYSTEM_FUNCTION: True, LIMIT: True}
    assert [one.text for one in found.depends_on] == ["(SELECT COUNT(*) FROM u) = 0"]
    assert found.depends_on[0].program == "procedure d.p"
    assert found.ways == 2


@pytest.mark.parametrize(
    "body",
    [
        f"IF @n THEN DO 0; ELSEIF (SELECT MAX(a) FROM t) > 3 THEN {UNSAFE}; END IF",
        f"IF (SELECT MAX(a) FROM t) THEN DO 0; ELSE {UNSAFE}; END IF",
        f"CASE (SELECT MAX(a) FROM t) WHEN 1 THEN DO 0; WHEN 2 THEN {UNSAFE}; ELSE DO 0; END CASE",
        f"CASE WHEN (SELECT MAX(a) FROM t) THEN DO 0; ELSE {UNSAFE}; END CASE",
        f"WHILE (SELECT MAX(a) FROM t) > 3 DO {UNSAFE}; END WHILE",
        (
            "BEGIN DECLARE i INT DEFAULT 0; WHILE i < (SELECT MAX(a) FROM t) DO SET i = i + 1;"
            f" IF i = 50 THEN {UNSAFE}; END IF; END WHILE; END"
        ),
        (
            "BEGIN DECLARE i INT DEFAULT 0; REPEAT SET i = i + 1;"
            f" IF i = 3 THEN {UNSAFE}; END IF; UNTIL (SELECT MAX(a) FROM t) < i END REPEAT; END"
        ),
        (
            "BEGIN DECLARE i INT DEFAULT 0; l: LOOP IF (SELECT MAX(a) FROM t) < i THEN LEAVE l; END IF;"
            f" IF i = 1 THEN {UNSAFE}; END IF; SET i = i + 1; END LOOP; END"
        ),
        (
            "BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT a FROM t;"
            f" DECLARE EXIT HANDLER FOR NOT FOUND {UNSAFE}; OPEN c; FETCH c INTO x; END"
        ),
        (
            "BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT a FROM t;"
            " DECLARE EXIT HANDLER FOR NOT FOUND DO 0; OPEN c;"
            f" LOOP FETCH c INTO x; IF x = 7 THEN {UNSAFE}; END IF; END LOOP; END"
        ),
        (
            "BEGIN DECLARE done INT DEFAULT 0; DECLARE x INT; DECLARE c CURSOR FOR SELECT a FROM t;"
            " DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c;"
            f" WHILE NOT done DO FETCH c INTO x; IF NOT done THEN {UNSAFE}; END IF; END WHILE; END"
        ),
    ],
)
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_each_kind_of_branch_is_followed(body: str, flavor: str) -> None:
    found = call(body, flavor=flavor)
    assert found.unanalysed is None
    assert notes(found) == {SYSTEM_FUNCTION: True}


def test_a_for_loop_over_rows_may_have_none() -> None:
    found = call(f"FOR r IN (SELECT a FROM t) DO {UNSAFE}; END FOR")
    assert notes(found) == {SYSTEM_FUNCTION: True}
    assert len(texts(found)) == 1


def test_known_conditions_take_one_way() -> None:
    body = f"BEGIN IF x >= y THEN SIGNAL SQLSTATE '45000'; END IF; {UNSAFE}; END"
    found = call(body, "1, 2", "x INT, y INT")
    assert (found.error, notes(found), found.depends_on) == (None, {SYSTEM_FUNCTION: False}, ())
    found = call(body, "2, 2", "x INT, y INT")
    assert found.error is not None
    assert (found.error.errno, found.error.on_some_ways, notes(found)) == (1644, False, {})


def test_an_error_on_some_ways_hides_nothing() -> None:
    body = f"BEGIN IF x >= 1 THEN SIGNAL SQLSTATE '45000'; END IF; {UNSAFE}; END"
    found = call(body, "(SELECT MAX(a) FROM t)", "x INT")
    assert found.error is not None
    assert (found.error.errno, found.error.on_some_ways) == (1644, True)
    assert notes(found) == {SYSTEM_FUNCTION: True}
    assert texts(found) == [UNSAFE]


def test_a_stated_error_leaves_the_ways_that_raise_it() -> None:
    body = (
        f"BEGIN IF (SELECT MAX(a) FROM t) THEN {UNSAFE}; ELSE SIGNAL SQLSTATE '45000'; END IF; END"
    )
    made = session(f"CREATE PROCEDURE p() {body}")
    found = made.execute("CALL p()", Outcome(error=1644))
    assert found.error is not None
    assert found.error.is_stated
    assert (notes(found), texts(found)) == ({}, [])


def test_what_all_ways_find_is_certain() -> None:
    branch = "IF (SELECT COUNT(*) FROM t) = {} THEN INSERT INTO u VALUES ({}, 'x'); END IF; "
    found = call("BEGIN " + branch.format(1, 1) + branch.format(2, 2) + UNSAFE + "; END")
    assert notes(found) == {SYSTEM_FUNCTION: False}
    assert len(found.depends_on) == 2


def test_ways_that_come_together_are_followed_once() -> None:
    branch = "IF (SELECT COUNT(*) FROM t) = {0} THEN INSERT INTO u VALUES ({0}, 'x'); END IF; "
    found = call(f"BEGIN {''.join(map(branch.format, range(60)))} {UNSAFE}; END")
    assert found.unanalysed is None
    assert found.ways == 61


def test_too_many_ways_are_not_analysed() -> None:
    # Each branch leaves another value behind, so that no two ways come together.
    branch = "IF (SELECT COUNT(*) FROM t) = {0} THEN SET @v{0} = 1; END IF; "
    found = call(f"BEGIN {''.join(map(branch.format, range(20)))} END")
    assert found.unanalysed is not None
    assert "(SELECT COUNT(*) FROM t) = " in found.unanalysed.reason


def test_a_loop_that_never_ends_says_so() -> None:
    found = call("BEGIN l: LOOP IF (SELECT 1 FROM t) THEN DO 0; END IF; END LOOP; END")
    assert found.unanalysed is not None
    assert "does not end" in found.unanalysed.reason


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_ways_of_triggers_and_functions(flavor: str) -> None:
    trigger = (
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW "
        "IF NEW.a > 5 THEN INSERT INTO u VALUES (1, 'x'); ELSE INSERT INTO v VALUES (1); END IF"
    )
    made = session(trigger, flavor, "ROW")
    known = made.execute("INSERT INTO t VALUES (1, 'x')")
    assert known.depends_on == ()
    found = made.execute("INSERT INTO t SELECT a, b FROM u WHERE a = 3")
    # The first branch writes what is read, which fails if there is a row.
    assert [one.text for one in found.depends_on] == ["NEW.a > 5", "a row for d.t"]
    assert found.depends_on[0].program == "trigger d.g"
    function = (
        "CREATE FUNCTION f(x INT) RETURNS INT BEGIN "
        "IF x > 1 THEN INSERT INTO u VALUES (1, 'x'); END IF; RETURN x; END"
    )
    made = session(function, flavor)
    assert texts(made.execute("SELECT f(2)")) == ["SELECT `d`.`f`(2)"]
    found = made.execute("SELECT f(a) FROM t")
    assert found.binlogs["binlog"].ways == 2


def test_a_function_that_hangs_on_data_has_no_known_value() -> None:
    function = (
        "CREATE FUNCTION f() RETURNS INT BEGIN "
        "IF (SELECT MAX(a) FROM t) THEN RETURN 1; END IF; RETURN 2; END//"
        f"CREATE PROCEDURE p() IF f() = 2 THEN {UNSAFE}; END IF"
    )
    assert notes(session(function).execute("CALL p()")) == {SYSTEM_FUNCTION: True}


def test_a_block_of_mariadb_outside_of_routines() -> None:
    block = f"BEGIN NOT ATOMIC IF (SELECT MAX(a) FROM t) THEN DO 0; ELSE {UNSAFE}; END IF; END"
    found = session().execute(block)
    assert notes(found) == {SYSTEM_FUNCTION: True}
    assert block[found.depends_on[0].offset :].startswith("(SELECT MAX(a)")


def test_the_session_goes_on_with_what_all_ways_leave() -> None:
    made = session(
        "CREATE PROCEDURE p() IF (SELECT MAX(a) FROM t) THEN SET @a = 1, @b = 5; CREATE TABLE n (a INT);"
        " ELSE SET @a = 2, @b = 5; CREATE TABLE o (a INT); END IF"
    )
    made.execute("CALL p()")
    assert made.execute("INSERT INTO n VALUES (1)").error is None
    assert made.execute("INSERT INTO o VALUES (1)").error is None
    assert texts(made.execute("INSERT INTO t SELECT @b, 'x'")) != []
    assert (
        made.execute("INSERT INTO u VALUES (@b, 'x')").binlogs["binlog"].events[1].info == "@`b`=5"
    )
    assert (
        made.execute("INSERT INTO u VALUES (@a, 'x')").binlogs["binlog"].events[1].info == "@`a`=#"
    )
    assert not made.objects.temporary_tables()


def test_a_text_that_differs_by_ways_is_prepared_on_each() -> None:
    made = session(
        "CREATE PROCEDURE p() IF (SELECT MAX(a) FROM t) THEN SET @s = 'DO 0'; "
        f"ELSE SET @s = '{UNSAFE}'; END IF"
    )
    for statement in ("CALL p()", "PREPARE q FROM @s"):
        assert made.execute(statement).unanalysed is None
    found = made.execute("EXECUTE q")
    assert notes(found) == {SYSTEM_FUNCTION: True}
    assert made.execute("DEALLOCATE PREPARE q").error is None
    gone = made.execute("EXECUTE q").error
    assert gone is not None
    assert gone.errno == 1243


def test_a_text_that_cannot_be_known_is_not_analysed() -> None:
    made = session()
    made.execute("SET @s = (SELECT b FROM t)")
    assert made.execute("PREPARE q FROM @s").unanalysed is None
    assert made.execute("EXECUTE q").unanalysed is not None
    assert made.execute("DEALLOCATE PREPARE q").unanalysed is None
    assert made.execute("EXECUTE q").unanalysed is None


@pytest.mark.parametrize(
    "script",
    [
        "SET @s = IF((SELECT COUNT(*) FROM information_schema.columns) > 0, 'DO 0', '{}')",
        "SET @s = (SELECT IF(COUNT(*) > 0, 'DO 0', '{}') FROM information_schema.columns)",
        "SELECT COUNT(*) INTO @n FROM t; SET @s = CASE WHEN @n THEN 'DO 0' ELSE '{}' END",
        "SELECT IF(COUNT(*), 'DO 0', '{}') INTO @s FROM t",
        "SET @s = CONCAT(IF((SELECT MAX(a) FROM t), 'DO 0 -- ', ''), '{}')",
    ],
)
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_each_text_that_a_variable_can_hold_is_analysed(script: str, flavor: str) -> None:
    made = session(flavor=flavor)
    for statement in script.format(UNSAFE).split("; "):
        made.execute(statement)
    assert made.execute("PREPARE q FROM @s").unanalysed is None
    found = made.execute("EXECUTE q")
    assert found.unanalysed is None
    assert notes(found) == {SYSTEM_FUNCTION: True}
    assert found.depends_on[0].text == "the text of q"
    assert made.execute("DEALLOCATE PREPARE q").error is None


def test_what_dynamic_ddl_changes_on_some_ways_is_there_behind_it() -> None:
    made = session()
    made.execute("SET @s = IF((SELECT COUNT(*) FROM t), 'DO 0', 'ALTER TABLE u ADD COLUMN c INT')")
    made.execute("PREPARE q FROM @s")
    made.execute("EXECUTE q")
    table = made.objects.table(TableName("d", "u"))
    assert table is not None
    assert [column.name for column in table.definition.columns] == ["a", "b", "c"]


def test_an_update_tells_its_triggers_the_values_that_it_sets() -> None:
    made = session(
        f"CREATE TRIGGER g BEFORE UPDATE ON t FOR EACH ROW IF NEW.b = 'x' THEN {UNSAFE}; END IF",
        mode="ROW",
    )
    assert made.execute("UPDATE t SET b = 'y' WHERE a = 1").depends_on == ()
    assert made.execute("UPDATE t SET b = CONCAT(b, 'y') WHERE a = 1").depends_on != ()

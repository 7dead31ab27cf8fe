"""What the groups that a session makes on its source are to each binlog."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.check.definitions import read_definitions
from binlane.statements.policy.refusals import NO_OUTCOME, Outcome
from binlane.statements.policy.server import Server
from binlane.statements.session.group_plan import GroupPlan, Part, RowsPart, TextPart
from binlane.statements.session.log_events import SOURCE_LOG, printed
from binlane.statements.session.planning_session import PlanningSession
from binlane.statements.session.report import StatementPlan
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.servers import RowImage
from tests.unit.statements.session.plans import Follower, TemporaryFollower, assembled, own_groups
from tests.unit.statements.session.test_recorded_sessions import VECTORS, session_of
from tests.yardsticks.outcomes import outcome
from tests.yardsticks.records import FLAVORS, Record, records
from tests.yardsticks.running import recorded_objects, settings_of

_SCHEMA: Final = """
SET GLOBAL gtid_mode = OFF; SET GLOBAL enforce_gtid_consistency = OFF;
CREATE DATABASE d; CREATE DATABASE e; USE d;
CREATE TABLE t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE TABLE t2 (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE TABLE n (id INT PRIMARY KEY, a INT) ENGINE=MyISAM;
CREATE TABLE fired (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE TABLE e.t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
DELIMITER $$
CREATE TRIGGER one AFTER INSERT ON fired FOR EACH ROW INSERT INTO n VALUES (NEW.id, 1)$$
CREATE PROCEDURE two() BEGIN INSERT INTO t VALUES (1, 1); INSERT INTO t2 VALUES (2, UUID()); END$$
CREATE PROCEDURE either() BEGIN
  IF (SELECT a FROM t LIMIT 1) THEN UPDATE t SET a = 1; ELSE UPDATE t SET a = 2; END IF;
END$$
DELIMITER ;
"""
_THREE: Final = (
    "CREATE BINLOG s FORMAT='STATEMENT'; CREATE BINLOG m FORMAT='MIXED'; "
    "CREATE BINLOG r FORMAT='ROW';"
)


def _session(flavor: str = "mariadb", definitions: str = _THREE) -> PlanningSession:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(_SCHEMA)
    return PlanningSession(
        Session(
            server=Server.parse(flavor),
            objects=objects,
            definitions=read_definitions(definitions, name="definitions.sql"),
            database="d",
            logs_source=True,
        )
    )


def _run(session: PlanningSession, *statements: str) -> StatementPlan:
    """Run statements; what the last one is. A preview always says the same before."""
    planned = None
    for statement in statements:
        expected = session.preview(statement)
        planned = session.execute(statement)
        assert planned == expected, statement
        assert planned.result.unanalysed is None
    assert planned is not None
    return planned


def _shown(parts: Iterable[Part]) -> list[int | str]:
    """Rows as the number of their statement, a text as what it says."""
    server = Server.parse("mariadb")
    return [
        part.number
        if isinstance(part, RowsPart)
        else "; ".join(printed(body, server).info for body in part.bodies).replace("use `d`; ", "")
        for part in parts
    ]


def _binlogs(group: GroupPlan) -> dict[str, list[int | str]]:
    return {name: _shown(parts) for name, parts in group.binlogs.items()}


def _marked(planned: StatementPlan) -> dict[str, list[int | str]]:
    return {} if planned.mark is None else _binlogs(planned.mark)


def _in(names: str, shown: list[int | str]) -> dict[str, list[int | str]]:
    """The same in several binlogs."""
    return {name: shown.copy() for name in names}


# One statement -------------------------------------------------------------------------------------


def test_statement_is_text_where_it_is_safe_and_rows_elsewhere() -> None:
    session = _session()
    safe = _run(session, "INSERT INTO t VALUES (1, 1)")
    unsafe = _run(session, "INSERT INTO t2 VALUES (1, UUID())")
    (group,) = safe.groups
    (((piece),),) = group.sections
    (number,) = group.numbers
    assert number == 1
    assert piece.tables == (TableName("d", "t"),)
    assert piece.changes == (("insert", TableName("d", "t")),)
    text = "INSERT INTO t VALUES (1, 1)"
    assert _binlogs(group) == {"s": [text], "m": [text]}
    assert _binlogs(unsafe.groups[0]) == {"s": ["INSERT INTO t2 VALUES (1, UUID())"]}
    assert safe.has_texts
    assert unsafe.has_texts


@pytest.mark.parametrize("flavor", FLAVORS)
def test_statement_that_changed_nothing_is_nowhere(flavor: str) -> None:
    session = _session(flavor)
    planned = session.execute("UPDATE t SET a = 1 WHERE id = 7", Outcome(rows=0))
    assert planned.result.binlogs["s"].bodies, "the binlog's own log has its text"
    assert planned.groups == ()
    assert planned.mark is None


def test_scope_leaves_a_statement_to_the_routing() -> None:
    session = _session(definitions="CREATE BINLOG x LOG(`e`) FORMAT='STATEMENT'")
    assert _binlogs(_run(session, "INSERT INTO t VALUES (1, 1)").groups[0]) == {}
    assert _binlogs(_run(session, "INSERT INTO e.t VALUES (1, 1)").groups[0]) == {
        "x": ["INSERT INTO e.t VALUES (1, 1)"]
    }


@pytest.mark.parametrize("flavor", FLAVORS)
def test_row_images_of_a_session_are_those_of_its_groups(flavor: str) -> None:
    session = _session(flavor)
    text = "UPDATE t SET a = a + 1"
    assert "r" not in _run(session, text).groups[0].binlogs
    session.execute("SET binlog_row_image = 'MINIMAL'")
    for number in range(3, 6):
        (group,) = _run(session, text).groups
        assert group.image is RowImage.MINIMAL
        assert _binlogs(group) == {"s": [text], "m": [text], "r": [number]}
    session.execute("SET binlog_row_image = 'FULL'")
    (group,) = _run(session, text).groups
    assert group.image is RowImage.FULL
    assert "r" not in group.binlogs


def test_row_images_of_sessions_that_log_rows_alone() -> None:
    session = _session(definitions="CREATE BINLOG r")
    text = "UPDATE t SET a = a + 1"
    assert _run(session, text).groups == ()
    session.execute("SET binlog_row_image = 'NOBLOB'")
    (group,) = _run(session, "BEGIN", text, "DELETE FROM t2", "COMMIT").groups
    assert (group.image, _binlogs(group)) == (RowImage.NOBLOB, {"r": [4, 5]})
    # The largest that one of its statements was run with.
    steps = ("BEGIN", text, "SET binlog_row_image = 'MINIMAL'", text, "COMMIT")
    assert _run(session, *steps).groups[0].image is RowImage.NOBLOB
    (group,) = _run(session, "BEGIN", text, "SET binlog_row_image = 'FULL'", "COMMIT").groups
    assert group.image is RowImage.MINIMAL
    assert _run(session, text).groups == ()
    assert not session.is_for_all
    (group,) = _run(session, f"SET STATEMENT binlog_row_image = 'MINIMAL' FOR {text}").groups
    assert group.image is RowImage.MINIMAL
    assert _run(session, text).groups == ()


@pytest.mark.parametrize("flavor", FLAVORS)
def test_definition_is_the_source_s_own(flavor: str) -> None:
    (group,) = _run(_session(flavor), "CREATE TABLE x (a INT)").groups
    assert group == GroupPlan()


def test_table_made_with_rows_is_its_own_text() -> None:
    (group,) = _run(_session(), "CREATE TABLE x SELECT * FROM t").groups
    assert group.numbers == (1,)
    assert _binlogs(group) == _in("sm", ["CREATE TABLE x SELECT * FROM t"])
    assert dict(group.ends) == {"s": None, "m": None}


def test_table_made_of_nothing_has_a_section_without_rows() -> None:
    planned = _session().execute("CREATE TABLE x SELECT * FROM t", Outcome(rows=0))
    (group,) = planned.groups
    assert (group.numbers, group.sections) == ((1,), ((),))
    assert _binlogs(group) == _in("sm", ["CREATE TABLE x SELECT * FROM t"])


@pytest.mark.parametrize("flavor", FLAVORS)
def test_nothing_reaches_the_binlogs_without_sql_log_bin(flavor: str) -> None:
    session = _session(flavor)
    planned = _run(session, "SET sql_log_bin = 0", "INSERT INTO t VALUES (1, 1)")
    assert _binlogs(planned.groups[0]) == _in("smr", [])
    assert not planned.has_texts
    planned = _run(session, "CREATE TABLE x (a INT)")
    assert _binlogs(planned.groups[0]) == _in("smr", [])
    planned = _run(session, "SET sql_log_bin = 1", "INSERT INTO t VALUES (1, 1)")
    assert _binlogs(planned.groups[0])["s"] == ["INSERT INTO t VALUES (1, 1)"]


def test_one_statement_alone_can_be_kept_from_the_binlogs() -> None:
    session = _session(definitions="CREATE BINLOG r FORMAT='ROW'")
    planned = _run(session, "SET STATEMENT sql_log_bin = 0 FOR INSERT INTO t VALUES (1, 1)")
    assert _binlogs(planned.groups[0]) == {"r": []}
    assert not _run(session, "INSERT INTO t VALUES (1, 1)").groups


def test_what_data_decides_is_rows() -> None:
    planned = _run(_session(), "CALL either()")
    assert planned.result.ways > 1
    assert _binlogs(planned.groups[0]) == {}


def test_statements_of_a_procedure_have_numbers_of_their_own() -> None:
    planned = _run(_session(), "CALL two()")
    first, second = planned.groups
    assert planned.numbers == range(1, 4)
    assert _binlogs(first) == _in("sm", ["INSERT INTO t VALUES (1, 1)"])
    assert _binlogs(second) == {"s": ["INSERT INTO t2 VALUES (2, UUID())"]}
    session = _session()
    planned = _run(session, "BEGIN", "CALL two()", "COMMIT")
    (group,) = planned.groups
    assert group.numbers == (3, 4)
    assert _binlogs(group)["m"] == ["INSERT INTO t VALUES (1, 1)", 4]


def test_delayed_rows_are_those_of_another_session() -> None:
    planned = _run(_session(), "INSERT DELAYED INTO n VALUES (1, 1)")
    assert planned.groups == ()
    assert not any(told.bodies for told in planned.result.binlogs.values())


def test_failed_statement_is_told_with_its_error() -> None:
    session = _session()
    planned = session.execute("INSERT INTO n VALUES (1, 1), (1, 1)", Outcome(error=1062, rows=1))
    assert _binlogs(planned.groups[0])["s"] == ["INSERT INTO n VALUES (1, 1), (1, 1)"]
    planned = session.execute("INSERT INTO t VALUES (1, 1), (1, 1)", Outcome(error=1062))
    assert planned.groups == ()


# Transactions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavor", FLAVORS)
def test_transaction_is_text_in_one_binlog_and_rows_in_another(flavor: str) -> None:
    session = _session(flavor)
    _run(session, "BEGIN", "INSERT INTO t VALUES (1, 1)", "INSERT INTO t2 VALUES (1, UUID())")
    (group,) = _run(session, "COMMIT").groups
    first, second = "INSERT INTO t VALUES (1, 1)", "INSERT INTO t2 VALUES (1, UUID())"
    assert group.numbers == (2, 3)
    assert _binlogs(group) == {"s": [first, second], "m": [first, 3]}


@pytest.mark.parametrize("flavor", FLAVORS)
def test_statement_that_cannot_be_text_is_rows_beside_the_others(flavor: str) -> None:
    session = _session(flavor)
    first, third = (f"INSERT INTO t VALUES ({one}, 1)" for one in (1, 3))
    _run(session, "BEGIN", first)
    session.have_rows(1)
    _run(session, "INSERT INTO t2 SELECT * FROM t", third)
    (group,) = _run(session, "COMMIT").groups
    assert group.numbers == (2, 3, 4)
    assert _binlogs(group)["s"] == [first, 3, third]
    (alone,) = _run(session, first).groups
    assert _binlogs(alone)["s"] == [first]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_savepoints_stay_and_what_is_rolled_back_goes(flavor: str) -> None:
    session = _session(flavor)
    _run(session, "BEGIN", "INSERT INTO t VALUES (1, 1)", "SAVEPOINT x")
    _run(session, "INSERT INTO t VALUES (2, 2)", "ROLLBACK TO x")
    (group,) = _run(session, "COMMIT").groups
    assert group.numbers == (2,)
    assert _binlogs(group) == _in("sm", ["INSERT INTO t VALUES (1, 1)", "SAVEPOINT `x`"])


def test_update_without_rows_stays_beside_others() -> None:
    session = _session()
    _run(session, "BEGIN", "INSERT INTO t VALUES (1, 1)")
    session.execute("UPDATE t SET a = 1 WHERE id = 9", Outcome(rows=0))
    (group,) = _run(session, "COMMIT").groups
    texts = ["INSERT INTO t VALUES (1, 1)", "UPDATE t SET a = 1 WHERE id = 9"]
    assert group.numbers == (2,)
    assert _binlogs(group) == dict.fromkeys("sm", texts)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_what_the_source_writes_at_once_is_there_at_once_and_not_again(flavor: str) -> None:
    session = _session(flavor)
    for round_ in range(3):  # the last ones are known from those before
        text, later = f"INSERT INTO n VALUES ({round_}, 3)", f"INSERT INTO t VALUES ({round_}, 4)"
        early = _run(session, "BEGIN", "INSERT INTO t VALUES (1, 1)", text)
        (group,) = early.groups
        assert group.numbers == (early.number,)
        assert _binlogs(group) == {"s": [text]}, "unsafe under MIXED, so rows there"
        (group,) = _run(session, later, "COMMIT").groups
        assert len(group.sections) == 2
        assert _binlogs(group)["s"] == ["INSERT INTO t VALUES (1, 1)", later]


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO n VALUES (3, UUID_SHORT())",
        "INSERT INTO n SELECT * FROM t",
        "UPDATE n SET a = 7 LIMIT 1",
    ],
)
def test_what_is_unsafe_there_too_is_rows_at_once(flavor: str, statement: str) -> None:
    session = _session(flavor)
    (group,) = _run(session, "BEGIN", "INSERT INTO t VALUES (1, 1)", statement).groups
    assert _binlogs(group) == {}, "rows, in all"
    (group,) = _run(session, "COMMIT").groups
    assert _binlogs(group)["s"] == ["INSERT INTO t VALUES (1, 1)"]


@pytest.mark.parametrize("flavor", FLAVORS)
def test_rows_that_cannot_be_rolled_back_are_there_once(flavor: str) -> None:
    session = _session(flavor)
    early = _run(session, "BEGIN", "INSERT INTO t VALUES (1, 1)", "INSERT INTO n VALUES (3, 3)")
    late = _run(session, "ROLLBACK")
    assert len(early.groups) == 1
    assert late.result.binlogs["s"].bodies, "the binlog's own log has both, rolled back"
    assert late.groups == ()
    assert late.mark is None


@pytest.mark.parametrize("flavor", FLAVORS)
def test_statement_whose_rows_are_in_two_groups_is_rows(flavor: str) -> None:
    session = _session(flavor)
    early = _run(session, "BEGIN", "INSERT INTO fired VALUES (1, 1)")
    late = _run(session, "INSERT INTO t VALUES (4, 4)", "COMMIT")
    (first,), (second,) = early.groups, late.groups
    assert first.numbers == (2,)
    assert second.numbers == (2, 3)
    assert _binlogs(first) == {}
    assert _binlogs(second)["s"] == [2, "INSERT INTO t VALUES (4, 4)"]


def test_prepared_transaction_is_planned_as_it_is_prepared() -> None:
    session = _session()
    _run(session, "XA START 'x'", "INSERT INTO t VALUES (1, 1)", "XA END 'x'")
    (group,) = _run(session, "XA PREPARE 'x'").groups
    assert _binlogs(group)["s"] == ["INSERT INTO t VALUES (1, 1)"]
    (group,) = _run(session, "XA COMMIT 'x'").groups
    assert _binlogs(group) == {}


# Temporary tables ----------------------------------------------------------------------------------


def test_groups_of_temporary_tables_have_no_home() -> None:
    session = _session()
    made = "CREATE TEMPORARY TABLE x (a INT)"
    assert _marked(_run(session, made)) == {"s": [made], "m": [made]}
    filled = "INSERT INTO x VALUES (1)"
    assert _marked(_run(session, filled)) == {"s": [filled], "m": [filled]}
    read = _run(session, "INSERT INTO t SELECT a, a FROM x")
    assert _binlogs(read.groups[0])["s"] == ["INSERT INTO t SELECT a, a FROM x"]
    gone = _marked(session.disconnect())
    assert gone["s"] == ["DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `x`"]


def test_temporary_table_in_a_transaction_is_in_its_group() -> None:
    session = _session()
    _run(session, "CREATE TEMPORARY TABLE x (a INT)", "BEGIN", "INSERT INTO x VALUES (1)")
    planned = _run(session, "INSERT INTO t VALUES (1, 1)", "COMMIT")
    assert planned.mark is None
    texts = ["INSERT INTO x VALUES (1)", "INSERT INTO t VALUES (1, 1)"]
    assert _binlogs(planned.groups[0])["s"] == texts


def test_text_never_reads_what_a_binlog_does_not_have() -> None:
    session = _session()
    made = _run(session, "CREATE TEMPORARY TABLE x (a INT)")
    assert made.mark is not None
    session.lose("s", made.mark.binlogs["s"])
    read = _run(session, "INSERT INTO t SELECT a, a FROM x")
    assert "s" not in _binlogs(read.groups[0])
    assert _binlogs(read.groups[0])["m"] == ["INSERT INTO t SELECT a, a FROM x"]
    assert "s" not in _marked(_run(session, "DROP TEMPORARY TABLE x"))


def test_text_never_reads_what_a_binlog_has_not_as_it_is() -> None:
    session = _session()
    _run(session, "CREATE TEMPORARY TABLE x (a INT)")
    filled = _run(session, "INSERT INTO x VALUES (1)")
    assert filled.mark is not None
    session.lose("s", filled.mark.binlogs["s"])
    read = _run(session, "INSERT INTO t SELECT a, a FROM x")
    assert "s" not in _binlogs(read.groups[0])
    assert "s" in _marked(_run(session, "DROP TEMPORARY TABLE x"))
    _run(session, "CREATE TEMPORARY TABLE x (a INT)", "INSERT INTO x VALUES (1)")
    read = _run(session, "INSERT INTO t SELECT a, a FROM x")
    assert _binlogs(read.groups[0])["s"] == ["INSERT INTO t SELECT a, a FROM x"]


def test_rolled_back_temporary_tables_are_told_with_their_end() -> None:
    session = _session()
    _run(session, "CREATE TEMPORARY TABLE x (a INT)", "BEGIN", "INSERT INTO t VALUES (1, 1)")
    planned = _run(session, "CREATE TEMPORARY TABLE y (a INT)", "ROLLBACK")
    if planned.mark is not None:
        assert planned.mark.ends["s"] is not None
    assert all(
        "INSERT INTO t" not in str(text) for parts in _marked(planned).values() for text in parts
    )


# When plans are needed -----------------------------------------------------------------------------


def test_rows_alone_need_no_plans() -> None:
    session = _session(definitions="CREATE BINLOG r FORMAT='ROW'; CREATE BINLOG q LOG(`d`);")
    _run(session, "SET binlog_format = ROW")
    assert not session.needs_plans
    planned = _run(session, "INSERT INTO t VALUES (1, 1)")
    assert planned.result.binlogs[SOURCE_LOG].bodies
    assert planned.groups == ()
    _run(session, "SET sql_log_bin = 0")
    assert session.needs_plans
    _run(session, "SET sql_log_bin = 1", "SET binlog_format = MIXED")
    assert session.needs_plans


def test_texts_that_wait_need_plans_though_all_log_rows_by_now() -> None:
    session = _session()
    _run(session, "BEGIN", "INSERT INTO t VALUES (1, 1)")
    definitions = read_definitions(
        "CREATE BINLOG s FORMAT='ROW'; CREATE BINLOG m FORMAT='ROW';", name="later.sql"
    )
    session.session.have(definitions)
    assert session.needs_plans
    planned = _run(session, "INSERT INTO t VALUES (2, 2)", "COMMIT")
    assert _binlogs(planned.groups[0])["s"] == ["INSERT INTO t VALUES (1, 1)", 3]
    assert not session.needs_plans


# What must always hold -----------------------------------------------------------------------------


def _planned_session(flavor: str, schema: list[str], definitions: str | None) -> PlanningSession:
    objects = session_of(flavor, schema).objects
    return PlanningSession(
        Session(
            server=Server.parse(flavor),
            objects=objects,
            definitions=None
            if definitions is None
            else read_definitions(definitions, name="definitions.sql"),
            database="d",
            logs_source=True,
        )
    )


@pytest.mark.parametrize("definitions", [None, _THREE], ids=["own", "three"])
@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_recorded_sessions(path: Path, definitions: str | None) -> None:
    """Every statement of every group is delivered once, and the model does not know the difference."""
    flavor = path.stem.rpartition(".")[2]
    first, *lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    session = _planned_session(flavor, first["schema"], definitions)
    plain = session_of(flavor, first["schema"])
    follower = Follower()
    is_known = definitions is None
    is_known &= "delayed" not in path.stem and "failed_create_or_replace" not in path.stem
    for place, line in enumerate(lines):
        said = Outcome(**{"error": line.get("error"), **line.get("outcome", {})})
        is_unlogged = not session.session.state.is_logging or "sql_log_bin" in line["sql"]
        if not line["sql"]:
            planned, result = session.disconnect(), plain.disconnect()
        else:
            expected = None if place % _PREVIEWED else session.preview(line["sql"], said)
            planned, result = session.execute(line["sql"], said), plain.execute(line["sql"], said)
            assert expected is None or planned == expected, line
        follower.check(planned, is_unlogged=is_unlogged)
        error = planned.result.error
        is_known &= error is None or not error.symbol.startswith("BINLANE_")
        if is_known:
            told = planned.result.binlogs["binlog"]
            assert told.bodies == result.binlogs["binlog"].bodies, line


_PREVIEWED: Final = 3
"""Each third statement is asked for before it is run."""


def _steps(record: Record) -> Iterable[tuple[str, Outcome]]:
    for statement in (*settings_of(record), *record.before):
        yield statement, NO_OUTCOME
    yield record.sql, outcome(record)
    for statement in record.end:
        yield statement, NO_OUTCOME


_EVERY: Final = 97


@pytest.mark.parametrize("flavor", FLAVORS)
def test_yardsticks(flavor: str) -> None:
    """Of every 97th record: where one engine is written, a plan makes what the model appends."""
    alike = 0
    for record in records(flavor):
        if record.number % _EVERY:
            continue
        session = PlanningSession(
            Session(
                server=Server.parse(flavor),
                objects=recorded_objects(flavor).copy(),
                database="d",
                logs_source=True,
            )
        )
        follower = Follower()
        for statement, said in _steps(record):
            planned = session.execute(statement, said)
            follower.check(planned)
            if not planned.groups:
                continue
            own = own_groups(planned, "binlog")
            made = assembled(planned, "binlog")
            is_early = any(group not in own for group in made)
            assert not is_early or follower.given_rows, (record.name, statement)
            alike += made == own
    assert alike


_STATEMENTS: Final = (
    *("BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT a", "SAVEPOINT b"),
    *("ROLLBACK TO a", "ROLLBACK TO b", "RELEASE SAVEPOINT a", "SET autocommit = 0"),
    *("SET autocommit = 1", "INSERT INTO t VALUES (7, 7)", "INSERT INTO t VALUES (7, 7)"),
    *("INSERT INTO t2 VALUES (7, UUID())", "UPDATE t SET a = 7 WHERE id = 7"),
    *("INSERT INTO n VALUES (7, 7)", "INSERT INTO n VALUES (7, UUID())"),
    *("INSERT INTO fired VALUES (7, 7)", "UPDATE t, n SET t.a = 7, n.a = 7"),
    *("INSERT INTO t SELECT * FROM n", "INSERT INTO n SELECT * FROM t", "CALL two()"),
    *("CALL either()", "CREATE TABLE x (a INT)", "DROP TABLE x", "CREATE TABLE x SELECT * FROM t"),
    *("DROP TABLE IF EXISTS x, tmp", "CREATE TEMPORARY TABLE tmp (id INT, a INT)"),
    *("CREATE TEMPORARY TABLE tmp ENGINE=MyISAM SELECT * FROM t", "DROP TEMPORARY TABLE tmp"),
    *("INSERT INTO tmp VALUES (7, 7)", "INSERT INTO t SELECT * FROM tmp"),
    *("INSERT INTO tmp SELECT * FROM t", "INSERT INTO n SELECT * FROM tmp"),
    *("UPDATE tmp SET a = 7", "TRUNCATE TABLE tmp", "ALTER TABLE tmp ADD COLUMN b INT"),
    *("CREATE TABLE x LIKE tmp", "INSERT INTO e.t VALUES (7, 7)", "XA START 'x'", "XA END 'x'"),
    *("XA PREPARE 'x'", "XA COMMIT 'x'", "XA ROLLBACK 'x'", "XA COMMIT 'x' ONE PHASE"),
    *("SET binlog_format = STATEMENT", "SET binlog_format = MIXED", "SET binlog_format = ROW"),
    *("SET sql_log_bin = 0", "SET sql_log_bin = 1", "LOCK TABLES t WRITE, n WRITE"),
    *("UNLOCK TABLES", "SET binlog_direct_non_transactional_updates = 1"),
)
_OUTCOMES: Final = (*(NO_OUTCOME,) * 8, Outcome(rows=0), Outcome(rows=2), Outcome(error=1062))


@pytest.mark.parametrize("flavor", FLAVORS)
@pytest.mark.parametrize("seed", range(6))
def test_random_sessions(flavor: str, seed: int) -> None:
    choose = random.Random(seed)
    session = _session(flavor, choose.choice((_THREE, f"{_THREE} CREATE BINLOG x LOG(`d`);")))
    names = [one.name for one in session.session.definitions or ()]
    follower = Follower()
    for _ in range(120):
        statement, said = choose.choice(_STATEMENTS), choose.choice(_OUTCOMES)
        if not statement.startswith(("INSERT", "UPDATE")):
            said = NO_OUTCOME
        is_unlogged = not session.session.state.is_logging
        expected = session.preview(statement, said)
        planned = session.execute(statement, said)
        assert planned == expected, statement
        follower.check(planned, is_unlogged=is_unlogged or "sql_log_bin" in statement)
        if planned.mark is not None and choose.random() < 0.1:
            name = choose.choice(sorted(planned.mark.binlogs))
            session.lose(name, planned.mark.binlogs[name])
            follower.lose(name, planned.mark.binlogs[name])
    follower.check(session.disconnect(), is_unlogged=not session.session.state.is_logging)
    assert set(follower.texts) <= set(names)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_texts_find_temporary_tables_as_the_source_had_them(flavor: str) -> None:
    choose = random.Random(7)
    left_out = ("ROLLBACK", "XA", "RELEASE", "LOCK", "SET sql_log_bin", "SET binlog_format = ROW")
    others = [one for one in _STATEMENTS if not one.startswith(left_out)]
    often = [one for one in others if "tmp" in one or one.startswith(("BEGIN", "COMMIT"))]
    texts = 0
    for _ in range(6):
        session = _session(flavor)
        follower = TemporaryFollower()
        for _ in range(120):
            statement = choose.choice(often if choose.random() < 0.7 else others)
            planned = session.execute(statement)
            follower.check(planned, session.session.state)
        texts += follower.texts
    assert texts > _TEXTS_MIN


_TEXTS_MIN: Final = 20


def test_what_is_kept_is_what_is_found_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of known statements are those of statements that are seen for the first time."""

    def told(*, is_kept: bool) -> list[StatementPlan]:
        if not is_kept:
            monkeypatch.setattr(
                "binlane.statements.session.recurring.Recurring.expect", lambda *_: None
            )
            monkeypatch.setattr(
                "binlane.statements.session.recurring.Recurring.again",
                lambda self, *_: self.leave(),
            )
        choose = random.Random(7)
        session = _session()
        often = [
            one for one in _STATEMENTS if one.startswith(("INSERT", "UPDATE", "BEGIN", "COMM"))
        ]
        return [session.execute(choose.choice(often), choose.choice(_OUTCOMES)) for _ in range(600)]

    assert told(is_kept=True) == told(is_kept=False)


def test_texts_are_of_the_statement_itself() -> None:
    session = _session()
    for number in range(1, 5):
        planned = _run(session, f"INSERT INTO t VALUES ({number}, 1)")
        (part,) = planned.groups[0].binlogs["s"]
        assert isinstance(part, TextPart)
        assert part.number == planned.number == number
        assert _shown([part]) == [f"INSERT INTO t VALUES ({number}, 1)"]

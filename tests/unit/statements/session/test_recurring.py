"""What a session keeps of its statements: one that keeps nothing tells the same."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.check.definitions import read_definitions
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.programs.host import ProgramState
from binlane.statements.session import recurring
from binlane.statements.session.caches import BinlogCaches, Cache
from binlane.statements.session.recurring import Recurring
from binlane.statements.session.report import StatementResult
from binlane.statements.session.session import Session
from binlane.statements.session.state import SessionState
from binlane.statements.session.statement_state import SessionStatement
from binlane.statements.session.transaction import EngineChanges, EngineUse, Transaction
from binlane.statements.session.variables import Variables
from binlane.statements.sql.catalog import SchemaCatalog
from tests.unit.statements.session.test_recorded_sessions import VECTORS, session_of

_ROUNDS: Final = 3
_NUMBER: Final = re.compile(r"(?<![\w`'\".@:$])[0-9]{1,4}(?![\w`'\".:])")


def _other_numbers(statement: str, by: int) -> str:
    """The same statement with other numbers: some of them 0, which stands for much in SQL."""
    return _NUMBER.sub(lambda found: str(int(found[0]) * by if by != 2 else 0), statement)


def _told(session: Session, statements: list[tuple[str, Outcome]]) -> Iterator[StatementResult]:
    for turn in range(_ROUNDS):
        for statement, outcome in statements:
            yield session.execute(statement, outcome)
            if not statement.upper().startswith(("INSERT", "UPDATE", "DELETE", "REPLACE")):
                continue
            for by in (2, 3 + turn):
                yield session.execute(_other_numbers(statement, by), outcome)
        yield session.disconnect()


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.jsonl")), ids=lambda path: path.stem)
def test_what_is_kept_tells_what_is_found_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flavor = path.stem.rpartition(".")[2]
    first, *records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    statements = [
        (record["sql"], Outcome(**record.get("outcome", {}))) for record in records if record["sql"]
    ]
    kept = list(_told(session_of(flavor, first["schema"]), statements))
    monkeypatch.setattr(Recurring, "again", lambda self, *_, **__: self.leave())
    assert kept == list(_told(session_of(flavor, first["schema"]), statements))


_SCHEMA: Final = """
SET GLOBAL gtid_mode = OFF; SET GLOBAL enforce_gtid_consistency = OFF;
CREATE DATABASE d; CREATE DATABASE e; USE d;
CREATE TABLE t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE TABLE n (id INT PRIMARY KEY, a INT) ENGINE=MyISAM;
CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE TABLE fired (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE TABLE named (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE TABLE e.t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
CREATE TRIGGER one AFTER INSERT ON fired FOR EACH ROW INSERT INTO n VALUES (NEW.id, 1);
CREATE TRIGGER two AFTER INSERT ON named FOR EACH ROW UPDATE t SET a = @x WHERE id = NEW.id;
CREATE VIEW v AS SELECT id, a FROM t WHERE a > 0;
"""
_ENDS: Final = ("BEGIN", "COMMIT", "ROLLBACK")
_OFTEN: Final = (
    *("INSERT INTO t VALUES (7, 7)", "UPDATE t SET a = 7 WHERE id = 7", "DELETE FROM t WHERE 7"),
    *("INSERT INTO n VALUES (7, 7)", "INSERT INTO fired VALUES (7, 7)", "UPDATE v SET a = 7"),
    *("INSERT INTO named VALUES (7, 7)", "INSERT INTO ids (a) VALUES (7)", "SELECT a FROM t LIMIT 7"),
    *("INSERT INTO ids VALUES (7, 7)", "INSERT INTO t SELECT id, 7 FROM ids LIMIT 7", "SET @x = 7"),
    *("DELETE FROM t WHERE 7 = 7", "INSERT INTO ids VALUES ('7', 7)", "INSERT INTO ids VALUES (0.7, 7)",
    "INSERT INTO ids VALUES (NULL, 7), (7, 7)", "REPLACE ids (a, id) VALUES (7, 7), (7, DEFAULT)",
    "INSERT ids SET id = 7", "UPDATE n SET a = 7 WHERE '7'"),
    *("INSERT INTO t VALUES (7, 7) /*!50000 , (77, 7) */", "INSERT INTO t VALUES (7, UUID())"),
    *("DELETE FROM ids WHERE id IS NULL", "INSERT INTO e.t VALUES (7, 7)", "INSERT INTO t VALUES (7, @x)"),
    *("SET autocommit = 0", "SET autocommit = 1", "SET NAMES utf8mb4", "SET SESSION TRANSACTION READ ONLY"),
    *("SET SESSION TRANSACTION READ WRITE", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "USE d", "USE e"),
    *("SHOW TABLES", "SELECT CAST(a AS CHAR(7)) FROM t", "SET foreign_key_checks = 0", "SET sql_mode = @@sql_mode"),
    *("SET @@session.lock_wait_timeout = 7, NAMES latin1 COLLATE latin1_bin", "SET character_set_results = NULL"),
)  # fmt: skip
_SELDOM: Final = (
    *("SAVEPOINT s", "ROLLBACK TO s", "RELEASE SAVEPOINT s", "COMMIT AND CHAIN"),
    *("SET autocommit = 0", "SET autocommit = 1", "SET foreign_key_checks = 0", "SET NAMES latin1"),
    *("SET sql_auto_is_null = 1", "SET sql_auto_is_null = 0", "SET sql_mode = 'ANSI_QUOTES'"),
    *("SET completion_type = 1", "SET completion_type = 0", "SET sql_log_bin = 0", "SET sql_log_bin = 1"),
    *("SET binlog_format = ROW", "SET binlog_format = MIXED", "SET binlog_format = STATEMENT"),
    *("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "USE d", "USE e", 'SELECT "a" FROM t WHERE id = 7'),
    *("SET binlog_direct_non_transactional_updates = 1", "SET foreign_key_checks = 1", "CREATE TABLE x (a INT)"),
    *("DROP TABLE x", "INSERT INTO x VALUES (7)", "CREATE TEMPORARY TABLE n (id INT, a INT)", "NONSENSE"),
    *("DROP TEMPORARY TABLE n", "LOCK TABLES t WRITE", "UNLOCK TABLES", "FLUSH TABLES WITH READ LOCK", "XA START 'x'", "XA END 'x'"),
    *("XA PREPARE 'x'", "XA COMMIT 'x'", "CREATE BINLOG g LOG(`d`.`t`)", "DROP BINLOG g"),
    *("PREPARE p FROM @y", "EXECUTE p", "SET @y = (SELECT a FROM t)", "INSERT INTO n VALUES (7, 7)"),
    *("ALTER TABLE t COMMENT = 'x'", "SET STATEMENT foreign_key_checks = 0 FOR DELETE FROM t"),
)  # fmt: skip
_BINLOGS: Final = (
    None,
    "CREATE BINLOG a LOG(`d`); CREATE BINLOG b LOG(`d`) FORMAT='ROW'; CREATE BINLOG c;",
    "CREATE BINLOG a LOG(`d`.`t`, `d`.`n`); CREATE BINLOG b LOG(`e`) FORMAT='STATEMENT';",
)


def _left(session: Session) -> tuple[object, ...]:
    """What a session keeps from one statement to the next."""
    state = session.snapshot()
    writes = () if state.safety is None else state.safety.transaction.writes
    return (
        *(state.database, state.variables, state.transaction, state.prepared_xa, state.temporary),
        *(
            state.locked_tables,
            state.is_read_locked,
            state.sequence_values,
            state.null_is_insert_id,
        ),
        *(state.unknown_programs, state.empty_tables, state.programs.user_variables),
        [(str(one.used), one.binlogs) for one in writes],
        list(state.binlogs.values()),
    )


def test_all_that_a_session_has_was_thought_of() -> None:
    """Whoever adds something: statements may hang on it that come again; see `Recurring`."""
    told = {each: {one.name for one in fields(each)} for each in _STATE}
    assert told == {each: set(names.split()) for each, names in _STATE.items()}


_STATE: Final = {
    SessionState: (
        "server database variables binlogs safety assume_engine transaction temporary locked_tables"
        " is_read_locked ready_tables"
        " empty_tables unknown_programs knows_accounts objects identity"
        # What no statement that is kept looks at.
        " host prepared_xa sequence_values programs execution null_is_insert_id account_name number"
        " handlers"
    ),
    Variables: "server values global_values is_format_set connection settings",
    Transaction: ("is_begun is_active own coming changes savepoints xid xa_phase unknown created"),
    EngineChanges: (
        "engines changed_nontransactional changed_nontransactional_temporary"
        " changed_temporary_tables"
    ),
    EngineUse: "has_two_phases is_changed",
    BinlogCaches: (
        "name server written statement_cache transaction_cache is_registered has_unsafe_content"
        " keeps_transaction positions held_temporary status_vars is_compressing"
        # Numbers alone.
        " written_marks"
    ),
    Cache: "counts_maps events before_statement open_rows closed_rows marks",
    ProgramState: "user_variables variable_names prepared remembered tables effort ways expected"
    " possible hides_prepared",
}


@pytest.mark.parametrize("binlogs", _BINLOGS)
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_random_sessions_are_those_that_keep_nothing(flavor: str, binlogs: str | None) -> None:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(_SCHEMA)
    definitions = None if binlogs is None else read_definitions(binlogs, name="binlogs")
    for seed in range(15):
        choice = random.Random(seed)
        # Few enough for the session to be in the same state again.
        often = (*_ENDS, *choice.sample(_OFTEN, 4))
        keeps, anew = (
            Session(
                server=Server.parse(flavor),
                objects=objects.copy(),
                definitions=definitions,
                database="d",
            )
            for _ in range(2)
        )
        leave = anew.recurring.leave
        anew.recurring.again = lambda *_, leave=leave, **__: leave()  # type: ignore[method-assign]  # only here
        done: list[str] = []
        for number in range(100):
            text = choice.choice(_SELDOM if choice.random() < 0.05 else often)
            text = re.sub("7", lambda _: choice.choice(("0", "1", "1", "22")), text)  # noqa: B023
            if number == 0 and binlogs is None:
                text = f"SET binlog_format = {('ROW', 'MIXED', 'STATEMENT')[seed % 3]}"
            done.append(text)
            told = [session.execute(text) for session in (keeps, anew)]
            assert told[0] == told[1], done
            if choice.random() < 0.05:
                assert _left(keeps) == _left(anew), done
            if choice.random() < 0.01:
                assert keeps.disconnect() == anew.disconnect(), done


_VALUES: Final = (
    "5",
    "0",
    "6",
    "'5'",
    "'0'",
    "5.5",
    "0.4",
    "1e1",
    "1e-9",
    "-5",
    "NULL",
    "0x0",
    "0x5",
)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO ids VALUES ({}, 1)",
        "INSERT INTO ids (a, id) VALUES (1, {}), (1, 2)",
        "REPLACE ids SET id = {}",
        "INSERT INTO ids (a) VALUES ({})",
        "DELETE FROM t WHERE {}",
        "UPDATE t SET a = 1 WHERE id = 1 AND {} = 5",
    ],
)
def test_literals_say_what_they_say_where_nothing_is_kept(flavor: str, statement: str) -> None:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(_SCHEMA)
    keeps, anew = (
        Session(server=Server.parse(flavor), objects=objects.copy(), database="d") for _ in "12"
    )
    leave = anew.recurring.leave
    anew.recurring.again = lambda *_, **__: leave()  # type: ignore[method-assign]  # only here
    texts = [statement.format(value) for value in (*_VALUES, *reversed(_VALUES))]
    for text in ("SET binlog_format = STATEMENT", *texts):
        assert keeps.execute(text) == anew.execute(text), text


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_trigger_reads_the_variable_of_now(flavor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(_SCHEMA)
    session = Session(server=Server.parse(flavor), objects=objects, database="d")
    session.execute("SET binlog_format = STATEMENT")
    carried_out = []
    carry_out = Session._carry_out

    def counted(self: Session, statement: SessionStatement) -> None:
        carried_out.append(statement.sql)
        carry_out(self, statement)

    monkeypatch.setattr(Session, "_carry_out", counted)
    for value in (1, 2):
        session.execute(f"SET @x = {value}")
        text = f"INSERT INTO named VALUES ({value}, 1)"
        events = session.execute(text).binlogs["binlog"].events
        assert [event.info for event in events if event.type == "User var"] == [f"@`x`={value}"]
        session.execute("SET binlog_format = ROW")
        session.execute(text)
        assert carried_out[-3:] == [text, "SET binlog_format = ROW", text]
        session.execute("SET binlog_format = STATEMENT")


def test_what_is_kept_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring, "KEPT_MAX", 10)
    monkeypatch.setattr(recurring, "_known", known := recurring._Known())
    objects = SchemaCatalog(Flavor.MARIADB)
    objects.load(_SCHEMA)
    session = Session(server=Server.parse("mariadb"), objects=objects, database="d")
    texts = [f"UPDATE t SET a = 1, a{'= a, a' * n} = 2" for n in range(7)]
    for text in ("BEGIN", *texts, "COMMIT", *texts * 2):
        (told,) = session.execute(text).binlogs.values()
        events = [event.info for event in told.events if event.type == "Annotate_rows"]
        assert events in ([], [text], texts)
        kept = [len(place.templates) for place in known.places.values()]
        assert sum(kept) + len(kept) <= 10


def test_texts_that_are_kept_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring, "TEXTS_MAX", 5)
    monkeypatch.setattr(recurring, "_known", known := recurring._Known())
    session = Session(server=Server.parse("mariadb"), objects=SchemaCatalog(), database="d")
    for value in (*range(9), 1, 2, 3):
        session.execute(f"SET lock_wait_timeout = {value}")
        session.execute(f"SELECT CAST('{value}' AS CHAR({value}))")
        assert sum(len(place.texts) for place in known.places.values()) <= 5
    session.execute(f"SET lock_wait_timeout = '{'9' * 2000}'")
    assert not any(len(key[0]) > 2000 for place in known.places.values() for key in place.texts)  # type: ignore[arg-type]  # none has an outcome
    assert session.system_variable("lock_wait_timeout") == int("9" * 2000)


_OPENING: Final = (
    *("SET NAMES utf8mb4", "SET autocommit = 0", "SET SESSION TRANSACTION READ ONLY", "USE e"),
    *("SHOW TABLES", "SET sql_mode = 'ANSI_QUOTES'", "SELECT CAST('x' AS CHAR(60))"),
    "SET autocommit = 1",
)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_the_opening_of_a_session_is_carried_out_in_the_first_one(
    flavor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = SchemaCatalog(Flavor(flavor))
    objects.load(_SCHEMA)
    sessions = [
        Session(server=Server.parse(flavor), objects=objects.copy(), database="d") for _ in range(2)
    ]
    told = [sessions[0].execute(text) for text in _OPENING]
    carried_out: list[SessionStatement] = []
    monkeypatch.setattr(Session, "_carry_out", lambda _, statement: carried_out.append(statement))
    assert [sessions[1].execute(text) for text in _OPENING] == told
    assert carried_out == []
    assert _left(sessions[1]) == _left(sessions[0])


_VALUES_SHOWN: Final = {
    "autocommit": ("ON", "OFF"),
    "sql_mode": ("", "STRICT_TRANS_TABLES", "ANSI_QUOTES,STRICT_ALL_TABLES"),
    "character_set_client": ("utf8mb4", "gbk"),
    "default_storage_engine": ("InnoDB", "MyISAM"),
    "foreign_key_checks": ("ON", "OFF"),
    "tx_isolation": ("REPEATABLE-READ", "READ-COMMITTED"),
}


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_session_begins_as_if_its_variables_had_been_set(flavor: str) -> None:
    for values in itertools.product(*_VALUES_SHOWN.values()):
        shown = dict(zip(_VALUES_SHOWN, values, strict=True))
        begun, sets = (
            Session(server=Server.parse(flavor), objects=SchemaCatalog(), definitions=())
            for _ in range(2)
        )
        for name, value in shown.items():
            sets.execute(f"SET SESSION {name} = '{value}'")
        sets.begin_with({"binlog_format": "MIXED"})
        begun.begin_with({"binlog_format": "MIXED"}, shown=shown)
        assert begun.state.variables == sets.state.variables
        assert begun.state.variables.settings == sets.state.variables.settings
        assert begun.state.transaction == sets.state.transaction


def test_objects_that_others_change_are_those_of_now() -> None:
    objects = SchemaCatalog(Flavor.MARIADB)
    objects.load(_SCHEMA)
    session = Session(server=Server.parse("mariadb"), objects=objects, database="d")
    ends = []
    for value in (1, 2, 3):
        result = session.execute(f"INSERT INTO t VALUES ({value}, 1)")
        ends.append(result.binlogs["binlog"].events[-1].type)
        if value == 2:
            objects.load("ALTER TABLE d.t ENGINE = MyISAM")
    assert ends == ["Xid", "Xid", "Query"]


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_statements_of_one_shape_are_carried_out_once(
    flavor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = SchemaCatalog()
    objects.load("CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY, a INT);")
    session = Session(server=Server.parse(flavor), objects=objects, database="d")
    first = session.execute("UPDATE t SET a = 1 WHERE id = 1")
    carried_out = []
    monkeypatch.setattr(Session, "_carry_out", lambda _, statement: carried_out.append(statement))
    again = session.execute("UPDATE t SET a = 77 WHERE id = 12")
    assert carried_out == []
    events = [
        [event for event in result.binlogs["binlog"].events if "UPDATE" not in event[1]]
        for result in (first, again)
    ]
    assert events[0] == events[1]
    if flavor == "mariadb":
        (told,) = [event for event in again.binlogs["binlog"].events if "UPDATE" in event[1]]
        assert "a = 77 WHERE id = 12" in told[1]

"""The decision for tables made by hand: engines, unsafe reasons, modes, both flavors."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from binlane.names import TableName
from binlane.statements.policy.engines import MARIADB_ENGINES
from binlane.statements.policy.procedure import Verdict, decide_statement
from binlane.statements.policy.reasons import Reason, ReasonFound
from binlane.statements.policy.resolution import ResolvedStatement, TableAccess
from binlane.statements.policy.server import Circumstances, Isolation, Server
from binlane.statements.sql.facts import RowChange
from binlane.statements.sql.schema import Key, Table
from binlane.statements.sql.servers import LoggingFormat, LoggingMode
from binlane.statements.sql.statement_kinds import StatementKind
from binlane.statements.sql.table_definitions import TableDefinition

MARIADB = Server.parse("mariadb")
MYSQL = Server.parse("mysql")
SERVERS = [pytest.param(server, id=server.flavor) for server in (MARIADB, MYSQL)]
UNSAFE = ReasonFound(reason=Reason.SYSTEM_FUNCTION, what="uuid()")
LIMITED = ReasonFound(reason=Reason.LIMIT, what="LIMIT")
STATEMENT, MIXED, ROW = LoggingMode.STATEMENT, LoggingMode.MIXED, LoggingMode.ROW
VECTORS = Path(__file__).parents[3] / "vectors" / "decision.tsv"


def table(
    name: str = "t",
    engine: str = "INNODB",
    *,
    is_temporary: bool = False,
    auto_increment: str | None = None,
    keys: tuple[Key, ...] = (),
    is_sequence: bool = False,
) -> Table:
    return Table(
        name=TableName("d", name),
        definition=TableDefinition(columns=()),
        engine=engine,
        is_temporary=is_temporary,
        auto_increment=auto_increment,
        keys=keys,
        is_sequence=is_sequence,
    )


def written(
    name: str = "t",
    engine: str = "INNODB",
    change: RowChange = RowChange.INSERT,
    *,
    is_temporary: bool = False,
    is_prelocked: bool = False,
    auto_increment: str | None = None,
    keys: tuple[Key, ...] = (),
) -> TableAccess:
    return TableAccess(
        table=table(
            name, engine, is_temporary=is_temporary, auto_increment=auto_increment, keys=keys
        ),
        changes=frozenset({change}),
        is_locked_for_write=True,
        is_prelocked=is_prelocked,
    )


def read(name: str = "s", engine: str = "INNODB", *, is_temporary: bool = False) -> TableAccess:
    return TableAccess(table=table(name, engine, is_temporary=is_temporary))


def statement(
    *accesses: TableAccess,
    reasons: tuple[ReasonFound, ...] = (),
    kind: StatementKind = StatementKind.INSERT,
    has_row_statement: bool = True,
) -> ResolvedStatement:
    return ResolvedStatement(
        kind=kind, accesses=accesses, reasons=reasons, has_row_statement=has_row_statement
    )


def errnos(verdict: Verdict) -> list[int]:
    return [error.errno for error in verdict.errors]


def reasons_of(verdict: Verdict) -> list[Reason]:
    return [found.reason for found in verdict.unsafe]


# -- Seed 002's table


def decision_rows() -> list[dict[str, str]]:
    with VECTORS.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def engine_with(capable: str) -> str | None:
    """An engine of today's MariaDB that can what a row of the table says."""
    return {"NN": None, "NY": "EXAMPLE", "YN": "ROCKSDB", "YY": "MYISAM"}[capable]


def decision_rule(row: dict[str, str]) -> str:
    capable = f"{row['row_capable']}{row['statement_capable']}"
    return f"002:decision-{row['safe']}-{row['binlog_format']}-{capable}".lower()


DECISIONS = [
    pytest.param(row, id=decision_rule(row), marks=pytest.mark.rule(decision_rule(row)))
    for row in decision_rows()
]


def test_the_table_of_seed_002_is_whole() -> None:
    assert len({decision_rule(row) for row in decision_rows()}) == 2 * len(LoggingMode) * 4


@pytest.mark.rule("002:mode-and-format")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("row", DECISIONS)
def test_the_servers_follow_the_table_of_seed_002(row: dict[str, str], server: Server) -> None:
    capable = row["row_capable"] + row["statement_capable"]
    engine = engine_with(capable)
    accesses = (
        (written("t", "EXAMPLE"), written("u", "ROCKSDB"))
        if engine is None
        else (written("t", engine),)
    )
    reasons = (UNSAFE,) if row["safe"] == "Unsafe" else ()
    mode = LoggingMode[row["binlog_format"]]
    verdict = decide_statement(
        statement(*accesses, reasons=reasons), Circumstances(server=server, logging_mode=mode)
    )
    # MariaDB refuses what the seed, and MySQL, only warn of.
    is_stricter = server.is_mariadb and bool(reasons) and mode is STATEMENT and capable == "NY"
    if is_stricter:
        assert errnos(verdict) == [1663]
    elif row["log_as"] == "":
        assert verdict.logging_format is None
        assert verdict.errors
    else:
        expected = LoggingFormat.ROW if row["log_as"] == "ROW" else LoggingFormat.STATEMENT
        assert verdict.logging_format is expected
        assert not verdict.errors
        assert reasons_of(verdict) == [found.reason for found in reasons]


# -- Errors


@pytest.mark.rule("004:ER_BINLOG_ROW_ENGINE_AND_STMT_ENGINE")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("mode", LoggingMode)
def test_nothing_fits_all_written_tables(server: Server, mode: LoggingMode) -> None:
    both = statement(written("t", "EXAMPLE"), written("u", "ROCKSDB"))
    verdict = decide_statement(both, Circumstances(server=server, logging_mode=mode))
    assert errnos(verdict) == [1661]
    assert verdict.logging_format is None
    assert verdict.errors[0].symbol == "ER_BINLOG_ROW_ENGINE_AND_STMT_ENGINE"


@pytest.mark.rule("004:ER_BINLOG_ROW_MODE_AND_STMT_ENGINE")
@pytest.mark.parametrize("server", SERVERS)
def test_row_mode_and_a_statement_only_engine(server: Server) -> None:
    now = Circumstances(server=server, logging_mode=ROW)
    assert errnos(decide_statement(statement(written("t", "EXAMPLE")), now)) == [1662]
    definition = statement(written("t", "EXAMPLE"), has_row_statement=False)
    assert decide_statement(definition, now).logging_format is LoggingFormat.STATEMENT


@pytest.mark.rule("004:ER_BINLOG_UNSAFE_AND_STMT_ENGINE")
def test_unsafe_and_a_statement_only_engine() -> None:
    unsafe = statement(written("t", "EXAMPLE"), reasons=(UNSAFE, LIMITED))
    for server, mode, numbers in [
        (MARIADB, MIXED, [1663, 1663]),
        (MARIADB, STATEMENT, [1663, 1663]),
        (MYSQL, MIXED, [1663, 1663]),
        (MYSQL, STATEMENT, []),
    ]:
        verdict = decide_statement(unsafe, Circumstances(server=server, logging_mode=mode))
        assert errnos(verdict) == numbers
        if numbers:
            assert "LIMIT clause" in verdict.errors[0].message
            assert verdict.errors[0].why[0].what == LIMITED.what
            assert verdict.errors[1].why[0].what == UNSAFE.what


@pytest.mark.rule("004:ER_BINLOG_ROW_INJECTION_AND_STMT_ENGINE")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("mode", LoggingMode)
def test_row_events_for_a_statement_only_engine(server: Server, mode: LoggingMode) -> None:
    now = Circumstances(server=server, logging_mode=mode, is_row_injection=True)
    assert errnos(decide_statement(statement(written("t", "EXAMPLE")), now)) == [1664]


@pytest.mark.rule("004:ER_BINLOG_ROW_INJECTION_AND_STMT_MODE")
def test_row_events_in_statement_mode() -> None:
    change = statement(written())
    for mode in (MIXED, ROW):
        now = Circumstances(server=MYSQL, logging_mode=mode, is_row_injection=True)
        assert decide_statement(change, now).logging_format is LoggingFormat.ROW
    now = Circumstances(server=MYSQL, logging_mode=STATEMENT, is_row_injection=True)
    assert errnos(decide_statement(change, now)) == [1666]
    now = Circumstances(server=MARIADB, logging_mode=STATEMENT, is_row_injection=True)
    assert decide_statement(change, now).logging_format is LoggingFormat.ROW


@pytest.mark.rule("004:ER_BINLOG_STMT_MODE_AND_ROW_ENGINE")
@pytest.mark.parametrize("server", SERVERS)
def test_statement_mode_and_a_row_only_engine(server: Server) -> None:
    now = Circumstances(server=server, logging_mode=STATEMENT)
    verdict = decide_statement(statement(written("t", "ROCKSDB")), now)
    assert errnos(verdict) == [1665]
    assert verdict.errors[0].message.endswith("limited to row-based logging.")


@pytest.mark.rule("004:ER_BINLOG_STMT_MODE_AND_ROW_ENGINE")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("isolation", Isolation)
def test_innodb_goes_by_the_isolation_level(server: Server, isolation: Isolation) -> None:
    change = statement(written())
    is_weak = isolation < Isolation.REPEATABLE_READ
    now = Circumstances(server=server, logging_mode=STATEMENT, isolation=isolation)
    verdict = decide_statement(change, now)
    assert errnos(verdict) == ([1665] if is_weak else [])
    if is_weak:
        assert verdict.errors[0].message.endswith(
            "row-based logging. InnoDB is limited to row-logging when transaction isolation level "
            "is READ COMMITTED or READ UNCOMMITTED."
        )
    now = Circumstances(server=server, logging_mode=MIXED, isolation=isolation)
    expected = LoggingFormat.ROW if is_weak else LoggingFormat.STATEMENT
    assert decide_statement(change, now).logging_format is expected
    locked = Circumstances(
        server=server, logging_mode=STATEMENT, isolation=isolation, has_locked_tables=True
    )
    if is_weak:
        message = decide_statement(change, locked).errors[0].message
        assert message.endswith("limited to row-based logging.")


@pytest.mark.rule("004:ER_BINLOG_MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE")
@pytest.mark.rule("004:unsafe-self-logging")
def test_self_logging_engines() -> None:
    now = Circumstances(server=MYSQL, logging_mode=MIXED)
    both = statement(written("t", "NDBCLUSTER"), written("u", "INNODB"))
    assert 1667 in errnos(decide_statement(both, now))
    one = decide_statement(statement(written("u"), read("s", "NDBCLUSTER")), now)
    assert Reason.MULTIPLE_ENGINES_AND_SELF_LOGGING_ENGINE in reasons_of(one)


@pytest.mark.parametrize("server", SERVERS)
def test_tables_that_are_never_replicated(server: Server) -> None:
    own = statement(written("setup_consumers", "PERFORMANCE_SCHEMA", RowChange.UPDATE))
    for mode in LoggingMode:
        verdict = decide_statement(own, Circumstances(server=server, logging_mode=mode))
        assert verdict.is_filtered
        assert not verdict.errors
    both = statement(written("x", "PERFORMANCE_SCHEMA"), written())
    now = Circumstances(server=server, logging_mode=STATEMENT)
    assert errnos(decide_statement(both, now)) == [1844]
    now = Circumstances(server=server, logging_mode=ROW)
    assert decide_statement(both, now).logging_format is LoggingFormat.ROW


@pytest.mark.rule("004:unsafe-system-table")
@pytest.mark.parametrize("server", SERVERS)
def test_reading_a_table_of_the_server_is_unsafe(server: Server) -> None:
    name = TableName("mysql", "general_log")
    log = TableAccess(table=Table(name=name, definition=TableDefinition(columns=()), engine="CSV"))
    now = Circumstances(server=server, logging_mode=STATEMENT)
    verdict = decide_statement(statement(written(), log), now)
    assert Reason.SYSTEM_TABLE in reasons_of(verdict)
    assert verdict.unsafe[0].what == "mysql.general_log"


def test_bulk_statements_of_mariadb() -> None:
    now = Circumstances(server=MARIADB, logging_mode=STATEMENT, is_bulk=True)
    assert errnos(decide_statement(statement(written()), now)) == [4033]
    now = Circumstances(server=MARIADB, logging_mode=MIXED, is_bulk=True)
    assert decide_statement(statement(written()), now).logging_format is LoggingFormat.ROW


# -- Reasons that the decision finds itself


@pytest.mark.parametrize("server", SERVERS)
def test_auto_increment(server: Server) -> None:
    now = Circumstances(server=server, logging_mode=STATEMENT)
    counting = written("t", auto_increment="k", keys=(Key(name="PRIMARY", columns=("k",)),))
    assert reasons_of(decide_statement(statement(counting), now)) == []
    selected = decide_statement(statement(counting, read()), now)
    assert reasons_of(selected) == [Reason.WRITE_AUTOINC_SELECT]
    second = written("t", auto_increment="k", keys=(Key(name="PRIMARY", columns=("g", "k")),))
    assert reasons_of(decide_statement(statement(second), now)) == [Reason.AUTOINC_NOT_FIRST]


@pytest.mark.rule("004:unsafe-autoincrement-sub-statement")
@pytest.mark.parametrize("server", SERVERS)
def test_auto_increment_in_a_trigger(server: Server) -> None:
    inner = written("log", auto_increment="k", is_prelocked=True)
    now = Circumstances(server=server, logging_mode=STATEMENT)
    verdict = decide_statement(statement(written(), inner), now)
    assert Reason.AUTOINC_COLUMNS in reasons_of(verdict)
    row = decide_statement(
        statement(written(), inner), Circumstances(server=server, logging_mode=ROW)
    )
    assert reasons_of(row) == []


@pytest.mark.rule("004:unsafe-nontransactional-after-transactional")
@pytest.mark.parametrize("server", SERVERS)
def test_nontransactional_after_transactional(server: Server) -> None:
    change = statement(written("m", "MYISAM"))
    now = Circumstances(
        server=server, logging_mode=STATEMENT, is_in_transaction=True, is_trx_cache_empty=False
    )
    assert reasons_of(decide_statement(change, now)) == [Reason.NONTRANS_AFTER_TRANS]
    direct = Circumstances(
        server=server,
        logging_mode=STATEMENT,
        is_in_transaction=True,
        is_trx_cache_empty=False,
        is_direct=True,
    )
    assert reasons_of(decide_statement(change, direct)) == []
    empty = Circumstances(server=server, logging_mode=STATEMENT, is_in_transaction=True)
    assert reasons_of(decide_statement(change, empty)) == []


@pytest.mark.parametrize("server", SERVERS)
def test_engines_mixed_in_a_transaction(server: Server) -> None:
    change = statement(written(), read("m", "MYISAM"))
    inside = Circumstances(server=server, logging_mode=MIXED, is_in_transaction=True)
    verdict = decide_statement(change, inside)
    assert reasons_of(verdict) == [Reason.MIXED_STATEMENT]
    assert verdict.is_mixed_unsafe
    assert verdict.logging_format is LoggingFormat.ROW
    assert verdict.unsafe[0].what == "d.m"
    outside = Circumstances(server=server, logging_mode=MIXED)
    assert decide_statement(change, outside).logging_format is LoggingFormat.STATEMENT


def test_xa_is_unsafe_in_mysql() -> None:
    now = Circumstances(server=MYSQL, logging_mode=STATEMENT, is_in_xa=True)
    assert reasons_of(decide_statement(statement(written()), now)) == [Reason.XA]
    now = Circumstances(server=MARIADB, logging_mode=STATEMENT, is_in_xa=True)
    assert reasons_of(decide_statement(statement(written()), now)) == []


def test_create_select_does_not_read_in_mariadb() -> None:
    made = statement(written("n", "MYISAM"), read("s"), kind=StatementKind.CREATE_TABLE_SELECT)
    weak = Isolation.READ_COMMITTED
    now = Circumstances(server=MARIADB, logging_mode=STATEMENT, isolation=weak)
    assert reasons_of(decide_statement(made, now)) == []
    now = Circumstances(server=MYSQL, logging_mode=STATEMENT, isolation=weak)
    assert reasons_of(decide_statement(made, now)) == [Reason.MIXED_STATEMENT]


# -- Temporary tables, BLACKHOLE, LOAD DATA, DELAYED, GTID


def test_temporary_tables_in_mixed_mode() -> None:
    change = statement(written("tt", is_temporary=True))
    now = Circumstances(server=MYSQL, logging_mode=MIXED)
    assert decide_statement(change, now).logging_format is LoggingFormat.ROW
    now = Circumstances(server=MARIADB, logging_mode=MIXED)
    assert decide_statement(change, now).logging_format is LoggingFormat.STATEMENT
    unlogged = frozenset({TableName("d", "tt")})
    now = Circumstances(server=MARIADB, logging_mode=MIXED, unlogged_temporary=unlogged)
    assert decide_statement(change, now).logging_format is LoggingFormat.ROW
    now = Circumstances(server=MARIADB, logging_mode=STATEMENT, unlogged_temporary=unlogged)
    assert decide_statement(change, now).logging_format is LoggingFormat.ROW


@pytest.mark.parametrize("server", SERVERS)
def test_a_session_forced_to_rows_stays_so(server: Server) -> None:
    now = Circumstances(server=server, logging_mode=MIXED, is_row_forced=True)
    assert decide_statement(statement(written()), now).logging_format is LoggingFormat.ROW


def test_blackhole_in_row_mode() -> None:
    change = statement(
        written("b1", "BLACKHOLE", RowChange.UPDATE),
        written("b2", "BLACKHOLE", RowChange.UPDATE),
        kind=StatementKind.UPDATE,
    )
    text = (
        "Row events are not logged for UPDATE statements that modify BLACKHOLE tables in row "
        "format. Table(s): 'b1,b2"
    )
    verdict = decide_statement(change, Circumstances(server=MARIADB, logging_mode=ROW))
    assert verdict.warnings == ((1105, f"{text}.'"),)
    verdict = decide_statement(change, Circumstances(server=MYSQL, logging_mode=ROW))
    assert verdict.warnings == ((1870, f"{text}'."),)


@pytest.mark.parametrize("server", SERVERS)
def test_load_data_goes_as_rows_without_a_reason(server: Server) -> None:
    load = statement(written(change=RowChange.LOAD), kind=StatementKind.LOAD_DATA)
    verdict = decide_statement(load, Circumstances(server=server, logging_mode=MIXED))
    assert verdict.logging_format is LoggingFormat.ROW
    assert verdict.unsafe == ()
    verdict = decide_statement(load, Circumstances(server=server, logging_mode=STATEMENT))
    assert verdict.logging_format is LoggingFormat.STATEMENT


@pytest.mark.parametrize("server", SERVERS)
def test_load_data_gives_no_notes(server: Server) -> None:
    load = statement(written("m", "MYISAM", RowChange.LOAD), kind=StatementKind.LOAD_DATA)
    now = Circumstances(
        server=server, logging_mode=STATEMENT, is_in_transaction=True, is_trx_cache_empty=False
    )
    assert decide_statement(load, now).unsafe == ()


@pytest.mark.rule("004:unsafe-insert-delayed")
def test_insert_delayed_goes_by_the_global_mode() -> None:
    def delayed(engine: str) -> ResolvedStatement:
        return ResolvedStatement(
            kind=StatementKind.INSERT, accesses=(written("m", engine),), is_delayed=True
        )

    now = Circumstances(server=MARIADB, logging_mode=STATEMENT)
    assert decide_statement(delayed("MYISAM"), now).logging_format is LoggingFormat.ROW
    assert errnos(decide_statement(delayed("INNODB"), now)) == [1616]
    now = Circumstances(server=MARIADB, logging_mode=STATEMENT, delayed_mode=STATEMENT)
    assert decide_statement(delayed("MYISAM"), now).logging_format is LoggingFormat.STATEMENT


def test_gtid_consistency() -> None:
    both = statement(written(), written("m", "MYISAM"))
    for consistency, numbers, warnings in [("ON", [1785], 0), ("WARN", [], 1), ("OFF", [], 0)]:
        now = Circumstances(server=MYSQL, logging_mode=ROW, gtid_consistency=consistency)
        verdict = decide_statement(both, now)
        assert errnos(verdict) == numbers
        assert len(verdict.warnings) == warnings
    alone = statement(written("m", "MYISAM"))
    now = Circumstances(server=MYSQL, logging_mode=ROW, gtid_consistency="ON")
    assert errnos(decide_statement(alone, now)) == []


@pytest.mark.rule("004:format-from-mode-and-unsafeness")
@pytest.mark.parametrize("server", SERVERS)
def test_a_sub_statement_is_not_decided_again(server: Server) -> None:
    now = Circumstances(server=server, logging_mode=MIXED, is_sub_statement=True)
    verdict = decide_statement(statement(written(), reasons=(UNSAFE,)), now)
    assert verdict.logging_format is LoggingFormat.STATEMENT


def test_steps_tell_the_decision() -> None:
    now = Circumstances(server=MARIADB, logging_mode=MIXED)
    verdict = decide_statement(statement(written(), read(), reasons=(UNSAFE,)), now)
    assert verdict.steps == (
        "unsafe: SYSTEM_FUNCTION (uuid())",
        "d.t is written (InnoDB), which can be logged as statement and as rows",
        "d.s is read (InnoDB)",
        "mode MIXED: logged as row",
    )


@pytest.mark.rule("002:capability-at-run-time")
def test_every_engine_of_mariadb_can_be_decided() -> None:
    now = Circumstances(server=MARIADB, logging_mode=MIXED)
    for engine in MARIADB_ENGINES:
        verdict = decide_statement(statement(written("t", engine)), now)
        assert verdict.logging_format is not None or verdict.errors

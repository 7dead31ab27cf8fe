"""The rules of seeds 001, 002 and 004 on caches and formats, one short session each.

What is expected here was written from the seeds, and where a server differs, from its own log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pytest

from tests.checked import log, results

BOTH: Final = ("mariadb", "mysql")
MARIADB: Final = ("mariadb",)
MYSQL: Final = ("mysql",)
T, N = "INSERT INTO t VALUES (1, '');", "INSERT INTO n VALUES (1, '');"
"""One row into a transactional and into a nontransactional table."""
LT, LN = T[:-1], N[:-1]
ROWS_T, ROWS_N = ["map d.t", "rows"], ["map d.n", "rows"]

SCHEMA: Final = """
SET GLOBAL gtid_mode = OFF; SET GLOBAL enforce_gtid_consistency = OFF;
CREATE DATABASE d; USE d;
CREATE TABLE t (a INT, x VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE n (a INT, x VARCHAR(100)) ENGINE=MyISAM;
CREATE TABLE ai (a INT AUTO_INCREMENT PRIMARY KEY, x VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE stmt_only (a INT) ENGINE=EXAMPLE;
CREATE FUNCTION loaded RETURNS INT SONAME 'loaded.so';
DELIMITER //
CREATE FUNCTION unsafe_function() RETURNS VARCHAR(100) RETURN UUID() //
CREATE FUNCTION fills_ai() RETURNS INT
BEGIN INSERT INTO ai (x) VALUES (''); RETURN 1; END //
CREATE PROCEDURE inner_one() BEGIN INSERT INTO t VALUES (2, ''); END //
CREATE PROCEDURE outer_one()
BEGIN INSERT INTO t VALUES (1, ''); CALL inner_one(); INSERT INTO n VALUES (3, ''); END //
DELIMITER ;
CREATE VIEW unsafe_view AS SELECT UUID() AS u;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A session and what it leaves in the log.

    Attributes:
        rules: Of the ledger.
        script: After SET binlog_format.
        events: Of the whole script, in short form.
        mode: binlog_format.
        servers: Where it is so.
    """

    rules: str
    script: str
    events: list[str]
    mode: str = "STATEMENT"
    servers: tuple[str, ...] = BOTH


CASES: Final = [
    Case(
        rules="004:R-log-commit 004:R-clear-TC 004:D-T-table",
        script=f"BEGIN; {T} {T} COMMIT; COMMIT;",
        events=["BEGIN", LT, LT, "XID"],
    ),
    Case(rules="004:R-log-commit", script="BEGIN; SELECT * FROM t; COMMIT;", events=[]),
    Case(
        rules="004:R-log-commit 004:R-log-commit-statement",
        script=f"BEGIN; {T} CREATE TABLE z (a INT); {T}",
        events=["BEGIN", LT, "XID", "CREATE TABLE z (a INT)", "BEGIN", LT, "XID"],
    ),
    Case(
        rules="004:R-flush-SC 004:D-N-table 004:D-log-target 004:R-log-statement-format-SC"
        " 004:PR-durability",
        script=f"BEGIN; {N} {T} COMMIT;",
        events=["BEGIN", LN, "COMMIT", "BEGIN", LT, "XID"],
    ),
    Case(
        rules="004:R-log-statement-format-TC 004:PR-causality 004:PR-causality-precedence",
        script=f"BEGIN; {T} {N} COMMIT;",
        events=["BEGIN", LT, LN, "XID"],
    ),
    Case(
        rules="004:R-log-row-format-N 004:R-log-row-format-T",
        mode="ROW",
        script=f"BEGIN; {T} {N} COMMIT;",
        events=["BEGIN", *ROWS_N, "COMMIT", "BEGIN", *ROWS_T, "XID"],
    ),
    Case(
        rules="004:R-log-row-format-T",
        mode="ROW",
        script=f"BEGIN; {T}\n-- @error 1062\n{T} COMMIT;",
        events=["BEGIN", *ROWS_T, "XID"],
    ),
    Case(
        rules="004:R-log-rollback 004:R-clear-TC",
        script=f"BEGIN; {T} ROLLBACK; {T}",
        events=["BEGIN", LT, "XID"],
    ),
    Case(
        rules="004:R-log-rollback 004:D-N-write",
        script=f"BEGIN; {T} {N} ROLLBACK;",
        events=["BEGIN", LT, LN, "ROLLBACK"],
    ),
    Case(
        rules="004:R-log-rollback",
        mode="ROW",
        script=f"BEGIN; {T} {N} ROLLBACK;",
        events=["BEGIN", *ROWS_N, "COMMIT"],
    ),
    Case(
        rules="004:R-log-rollback-to-savepoint",
        script=f"BEGIN; {T} SAVEPOINT s; {T} ROLLBACK TO s; COMMIT;",
        events=["BEGIN", LT, "SAVEPOINT `s`", "XID"],
    ),
    Case(
        rules="004:R-log-rollback-to-savepoint",
        script=f"BEGIN; {T} SAVEPOINT s; {N} ROLLBACK TO s; COMMIT;",
        events=["BEGIN", LT, "SAVEPOINT `s`", LN, "ROLLBACK TO `s`", "XID"],
    ),
    Case(
        rules="004:R-log-statement-format-error",
        script=f"-- @error 1062\n{T}\nBEGIN;\n-- @error 1062\n{T} COMMIT;",
        events=[],
    ),
    Case(
        rules="004:R-log-statement-format-error 004:D-N-write",
        script=f"-- @error 1062\n-- @rows 1\n{N}",
        events=["BEGIN", LN, "COMMIT"],
    ),
    Case(
        rules="004:R-log-create-select-statement-format",
        script="CREATE TABLE z SELECT * FROM t;",
        events=["CREATE TABLE z SELECT * FROM t"],
    ),
    Case(
        rules="004:R-log-create-select-statement-format-error",
        script="-- @error 1062\nCREATE TABLE z SELECT * FROM t;",
        events=[],
    ),
    Case(
        rules="004:R-log-create-select-statement-format-temporary",
        script=f"BEGIN; {T} CREATE TEMPORARY TABLE z SELECT * FROM t; COMMIT;",
        events=["BEGIN", LT, "CREATE TEMPORARY TABLE z SELECT * FROM t", "XID"],
    ),
    Case(
        rules="004:R-log-create-select-row-format-temporary 004:R-log-row-format-temporary",
        mode="ROW",
        script="CREATE TEMPORARY TABLE z SELECT * FROM t; INSERT INTO z SELECT * FROM z;",
        events=[],
    ),
    Case(
        rules="004:R-log-create-select-row-format",
        mode="ROW",
        script="-- @error 1062\nCREATE TABLE z SELECT * FROM t;",
        events=[],
    ),
    Case(
        rules="004:R-log-commit-statement 001:row-ddl",
        mode="ROW",
        script="CREATE TABLE z (a INT); ALTER TABLE z ADD b INT; TRUNCATE TABLE z;",
        events=["CREATE TABLE z (a INT)", "ALTER TABLE z ADD b INT", "TRUNCATE TABLE z"],
    ),
    Case(
        rules="001:statement-as-executed 001:statement-auto-increment 001:three-formats",
        script="INSERT INTO t /* as it is */ VALUES (1,  NOW());",
        events=["BEGIN", "INSERT INTO t /* as it is */ VALUES (1,  NOW())", "XID"],
    ),
    Case(
        rules="001:statement-auto-increment",
        script="INSERT INTO ai (x) VALUES ('');",
        events=["BEGIN", "Intvar INSERT_ID=#", "INSERT INTO ai (x) VALUES ('')", "XID"],
    ),
    Case(
        rules="001:row-dml 001:three-formats",
        mode="ROW",
        script=f"{T} UPDATE t SET a = 2; DELETE FROM t;",
        events=["BEGIN", *ROWS_T, "XID"] * 3,
    ),
    Case(
        rules="001:mixed 001:mixed-in-transaction 001:three-formats 004:unsafe-mixed-row"
        " 004:format-from-mode-and-unsafeness",
        mode="MIXED",
        script=f"BEGIN; {T} INSERT INTO t VALUES (1, UUID()); COMMIT;",
        events=["BEGIN", LT, *ROWS_T, "XID"],
    ),
    Case(
        rules="001:mysql-direct",
        mode="ROW",
        script="INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N');",
        events=["BEGIN", "map mysql.time_zone", "rows", "COMMIT"],
        servers=MARIADB,
    ),
    Case(
        rules="001:mysql-indirect",
        mode="ROW",
        script="GRANT SELECT ON d.t TO 'root'@'localhost';",
        events=["GRANT SELECT ON d.t TO 'root'@'localhost'"],
        servers=MARIADB,
    ),
    Case(
        rules="004:call-unrolled",
        script="CALL outer_one();",
        events=[
            *("BEGIN", LT, "XID"),
            *("BEGIN", "INSERT INTO t VALUES (2, '')", "XID"),
            *("BEGIN", "INSERT INTO n VALUES (3, '')", "COMMIT"),
        ],
    ),
    Case(
        rules="001:binlog-format-session",
        script=f"SET SESSION binlog_format = 'ROW'; {T}",
        events=["BEGIN", *ROWS_T, "XID"],
    ),
    Case(
        rules="001:binlog-format-global",
        script=f"SET GLOBAL binlog_format = 'ROW'; {T}",
        events=["BEGIN", LT, "XID"],
    ),
    Case(
        rules="001:create-select",
        mode="STATEMENT",
        script="CREATE TABLE z SELECT * FROM t;",
        events=["CREATE TABLE z SELECT * FROM t"],
    ),
    Case(
        rules="002:sql-log-bin",
        script="SET sql_log_bin = 0; INSERT INTO stmt_only VALUES (1); INSERT INTO t VALUES (1, UUID());",
        events=[],
    ),
]


@pytest.mark.parametrize(
    "case, server",
    [
        pytest.param(
            case,
            server,
            marks=[pytest.mark.rule(rule) for rule in case.rules.split()],
            id=f"{number}-{server}",
        )
        for number, case in enumerate(CASES)
        for server in case.servers
    ],
)
def test_what_a_session_leaves_in_the_log(case: Case, server: str) -> None:
    script = f"SET SESSION binlog_format = '{case.mode}';\n{case.script}"
    found = results(script, schema=SCHEMA, server=server)
    assert [one.unanalysed for one in found if one.unanalysed] == []
    assert [one.error for one in found if one.error and not one.error.is_stated] == []
    assert log(script, schema=SCHEMA, server=server) == case.events


@pytest.mark.rule("004:R-log-create-select-row-format")
@pytest.mark.rule("001:create-select")
@pytest.mark.parametrize("server", BOTH)
def test_create_select_by_rows_is_one_group(server: str) -> None:
    script = "SET SESSION binlog_format = 'ROW'; CREATE TABLE z SELECT * FROM t;"
    begin, create, *rows, end = log(script, schema=SCHEMA, server=server)
    assert (begin, end) == ("BEGIN", "XID")
    assert create.startswith("CREATE TABLE `z` (\n  `a` int")
    assert rows == ["map d.z", "rows"]


@pytest.mark.rule("001:row-annotate")
def test_the_text_goes_before_the_rows() -> None:
    script = f"SET SESSION binlog_format = 'ROW'; {T}"
    events = results(script, schema=SCHEMA)[-1].binlogs["binlog"].events
    assert [type_ for type_, _ in events] == [
        *("Gtid", "Annotate_rows", "Table_map", "Write_rows_v1", "Xid")
    ]
    assert events[1].info == LT


def _reasons(statement: str, server: str, mode: str = "STATEMENT") -> list[str]:
    script = f"SET SESSION binlog_format = '{mode}'; {statement}"
    result = results(script, schema=SCHEMA, server=server)[-1]
    assert result.error is None
    assert result.unanalysed is None
    return [note.reason.removeprefix("ER_BINLOG_UNSAFE_") for note in result.notes]


UNSAFE: Final = [
    *("FOUND_ROWS", "GET_LOCK", "IS_FREE_LOCK", "IS_USED_LOCK", "LOAD_FILE", "MASTER_POS_WAIT"),
    *("RELEASE_LOCK", "ROW_COUNT", "SESSION_USER", "SLEEP", "SYSDATE", "SYSTEM_USER", "USER"),
    *("UUID", "UUID_SHORT"),
]
ARGUMENTS: Final = {
    "GET_LOCK": "'l', 1",
    "MASTER_POS_WAIT": "'f', 4",
    "SLEEP": "0",
    "LOAD_FILE": "'f'",
    "IS_FREE_LOCK": "'l'",
    "IS_USED_LOCK": "'l'",
    "RELEASE_LOCK": "'l'",
}
SAFE: Final = {
    "CONNECTION_ID": "CONNECTION_ID()",
    "LAST_INSERT_ID": "LAST_INSERT_ID()",
    "NOW": "NOW()",
    "UNIX_TIMESTAMP": "UNIX_TIMESTAMP()",
    **{
        name: name
        for name in (
            *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME"),
            *("LOCALTIMESTAMP", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP"),
        )
    },
    "CURDATE": "CURDATE()",
    "CURTIME": "CURTIME()",
}


@pytest.mark.rule("004:unsafe-in-every-mode")
@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(name, marks=pytest.mark.rule(f"004:unsafe-function-{name}"))
        for name in [*UNSAFE, "RAND"]
    ],
)
def test_unsafe_functions(server: str, function: str) -> None:
    statement = f"UPDATE t SET x = {function}({ARGUMENTS.get(function, '')});"
    assert _reasons(statement, server) == ["SYSTEM_FUNCTION"]
    script = f"SET SESSION binlog_format = 'MIXED'; {statement}"
    assert log(script, schema=SCHEMA, server=server) == ["BEGIN", *ROWS_T, "XID"]


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, marks=pytest.mark.rule(f"004:safe-function-{name}"))
        for name, call in SAFE.items()
    ]
    + [pytest.param("SQRT(2.5e0)", marks=pytest.mark.rule("004:safe-floating-point"))],
)
def test_safe_functions(server: str, call: str) -> None:
    assert _reasons(f"UPDATE t SET x = {call};", server) == []


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize(
    "statement, reason",
    [
        pytest.param(statement, reason, marks=[pytest.mark.rule(rule) for rule in rules.split()])
        for statement, reason, rules in [
            (
                "DELETE FROM t LIMIT 1;",
                "LIMIT",
                (
                    "004:unsafe-limit 001:unsafe-warning 002:warning-executed"
                    " 004:warning-statement-mode 002:safe"
                ),
            ),
            (
                "INSERT INTO t VALUES (1, @@hostname);",
                "SYSTEM_VARIABLE",
                "004:unsafe-system-variable",
            ),
            ("INSERT INTO t VALUES (loaded(), '');", "UDF", "004:unsafe-udf 002:safe"),
            (
                "INSERT INTO t VALUES (1, unsafe_function());",
                "SYSTEM_FUNCTION",
                "004:sub-statement-unsafe",
            ),
            (
                "INSERT INTO t SELECT 1, u FROM unsafe_view;",
                "SYSTEM_FUNCTION",
                "004:sub-statement-unsafe",
            ),
            (
                "INSERT INTO t VALUES (fills_ai(), '');",
                "AUTOINC_COLUMNS",
                "004:unsafe-autoincrement-sub-statement",
            ),
            (
                f"BEGIN; {T} INSERT INTO n VALUES (1, '');",
                "NONTRANS_AFTER_TRANS",
                "004:unsafe-nontransactional-after-transactional 004:R-unsafe-nontransactional",
            ),
        ]
    ],
)
def test_unsafe_statements(server: str, statement: str, reason: str) -> None:
    assert _reasons(statement, server) == [reason]


@pytest.mark.rule("004:unsafe-system-variable")
@pytest.mark.parametrize("server", BOTH)
def test_the_documented_exceptions_of_system_variables(server: str) -> None:
    assert _reasons("INSERT INTO t VALUES (@@session.timestamp, '');", server) == []


@pytest.mark.rule("004:unsafe-insert-delayed")
def test_insert_delayed() -> None:
    """A thread of the server runs it, with the server's binlog_format: MIXED makes rows of it."""
    statement = "INSERT DELAYED INTO n VALUES (1, '');"
    script = f"SET SESSION binlog_format = 'STATEMENT'; {statement}"
    assert log(script, schema=SCHEMA) == ["BEGIN", *ROWS_N, "COMMIT"]
    schema = f"SET GLOBAL binlog_format = 'STATEMENT'; {SCHEMA}"
    assert log(statement, schema=schema) == ["BEGIN", "INSERT  INTO n VALUES (1, '')", "COMMIT"]


@pytest.mark.rule("004:unsafe-system-table")
def test_system_log_tables() -> None:
    reasons = _reasons("INSERT INTO t SELECT 1, user_host FROM mysql.general_log;", "mariadb")
    assert reasons == ["SYSTEM_TABLE"]


@pytest.mark.rule("004:warning-when-logged")
@pytest.mark.rule("004:warning-statement-mode")
@pytest.mark.parametrize("server", BOTH)
def test_notes_come_with_the_log_only(server: str) -> None:
    unsafe = "INSERT INTO t VALUES (1, UUID());"
    assert _reasons(unsafe, server) == ["SYSTEM_FUNCTION"]
    assert _reasons(unsafe, server, mode="MIXED") == []
    assert _reasons(unsafe, server, mode="ROW") == []
    assert _reasons(f"SET sql_log_bin = 0; {unsafe}", server) == []
    script = f"SET SESSION binlog_format = 'STATEMENT';\n-- @error 1062\n{unsafe}"
    assert results(script, schema=SCHEMA, server=server)[-1].notes == ()


@pytest.mark.parametrize("server", BOTH)
@pytest.mark.parametrize(
    "mode, statement, errno",
    [
        pytest.param(*case, marks=[pytest.mark.rule(rule) for rule in rules.split()])
        for *case, rules in [
            (
                "ROW",
                "INSERT INTO stmt_only VALUES (1);",
                1662,
                (
                    "004:ER_BINLOG_ROW_MODE_AND_STMT_ENGINE 004:impossible-not-executed"
                    " 002:error-not-executed"
                ),
            ),
            (
                "MIXED",
                "INSERT INTO stmt_only VALUES (LENGTH(UUID()));",
                1663,
                "004:ER_BINLOG_UNSAFE_AND_STMT_ENGINE 004:unsafe-before-decision",
            ),
            (
                "STATEMENT",
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; INSERT INTO t VALUES (1, '');",
                1665,
                (
                    "004:ER_BINLOG_STMT_MODE_AND_ROW_ENGINE 004:impossible-not-executed"
                    " 002:capability-at-run-time 002:set-restricted"
                ),
            ),
            (
                "MIXED",
                (
                    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
                    "UPDATE t, stmt_only SET t.a = 1, stmt_only.a = 1;"
                ),
                1661,
                "004:ER_BINLOG_ROW_ENGINE_AND_STMT_ENGINE 002:set-restricted",
            ),
        ]
    ],
)
def test_what_cannot_be_logged_is_not_executed(
    mode: str, statement: str, errno: int, server: str
) -> None:
    script = f"SET SESSION binlog_format = '{mode}'; {statement}"
    result = results(script, schema=SCHEMA, server=server)[-1]
    assert result.error is not None
    assert result.error.errno == errno
    assert result.binlogs["binlog"].events == ()
    assert result.notes == ()


@pytest.mark.rule("002:to-write-tables")
@pytest.mark.parametrize("server", BOTH)
def test_only_tables_that_are_written_decide(server: str) -> None:
    script = "SET SESSION binlog_format = 'ROW'; INSERT INTO t SELECT a, '' FROM stmt_only;"
    assert log(script, schema=SCHEMA, server=server) == ["BEGIN", *ROWS_T, "XID"]


@pytest.mark.rule("001:default-mixed")
def test_the_default_modes() -> None:
    safe, unsafe = T, "INSERT INTO t VALUES (1, UUID());"
    assert log(safe + unsafe, schema=SCHEMA) == ["BEGIN", LT, "XID", "BEGIN", *ROWS_T, "XID"]
    assert log(safe, schema=SCHEMA, server="mysql") == ["BEGIN", *ROWS_T, "XID"]


@pytest.mark.rule("001:statement-to-row-temporary")
def test_a_temporary_table_made_in_row_mode_makes_rows() -> None:
    script = (
        "SET SESSION binlog_format = 'ROW'; CREATE TEMPORARY TABLE z (a INT, x INT);"
        "SET SESSION binlog_format = 'MIXED'; INSERT INTO t SELECT * FROM z;"
    )
    found = results(script, schema=SCHEMA)
    if found[2].error is None:
        assert log(script, schema=SCHEMA) == ["BEGIN", *ROWS_T, "XID"]
    else:
        assert found[2].error.errno == 1559


@pytest.mark.rule("001:statement-to-row-sequence")
def test_sequences_make_rows() -> None:
    script = (
        "SET SESSION binlog_format = 'MIXED'; CREATE SEQUENCE s;"
        "INSERT INTO t VALUES (NEXT VALUE FOR s, '');"
    )
    events = log(script, schema=SCHEMA)
    assert "rows" in events
    assert "map d.s" in events


@pytest.mark.rule("004:unsafe-fulltext-plugin")
def test_fulltext_parser_plugins() -> None:
    """What the seed misses in the servers of its time; MySQL has it now."""
    schema = """
        CREATE DATABASE d; USE d;
        CREATE TABLE f (x VARCHAR(100), FULLTEXT KEY (x) WITH PARSER ngram) ENGINE=InnoDB;
    """
    script = "SET SESSION binlog_format = 'STATEMENT'; INSERT INTO f VALUES ('abc');"
    (note,) = results(script, schema=schema, server="mysql")[-1].notes
    assert note.reason == "ER_BINLOG_UNSAFE_FULLTEXT_PLUGIN"

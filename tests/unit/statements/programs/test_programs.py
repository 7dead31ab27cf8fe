"""Programs run in a session; the events were taken from real servers."""

from __future__ import annotations

import pytest

from binlane.log.codec.types import Flavor
from binlane.statements.policy.refusals import Outcome
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog

SCHEMA = """
CREATE DATABASE d; USE d;
CREATE TABLE ti (a INT, b VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE t2 (a INT, b VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE t3 (a INT, b VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE tm (a INT, b VARCHAR(100)) ENGINE=MyISAM;
CREATE TABLE tb (a INT, b VARCHAR(100)) ENGINE=InnoDB;
CREATE TABLE ai (a INT AUTO_INCREMENT PRIMARY KEY, b INT) ENGINE=InnoDB;
CREATE TABLE p (a INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE c (a INT PRIMARY KEY, p INT,
    FOREIGN KEY (p) REFERENCES p(a) ON DELETE CASCADE) ENGINE=InnoDB;
DELIMITER //
CREATE FUNCTION f1(x INT, y VARCHAR(10)) RETURNS INT
BEGIN insert into t2 values(x,y); INSERT INTO t3 VALUES (x, y); RETURN x; END //
CREATE FUNCTION fm(x INT) RETURNS INT BEGIN INSERT INTO tm VALUES (x, 'q'); RETURN x; END //
CREATE FUNCTION fai() RETURNS INT BEGIN INSERT INTO ai(b) VALUES (1); RETURN last_insert_id(); END //
CREATE FUNCTION fcond(x INT) RETURNS INT
BEGIN IF x > 3 THEN INSERT INTO t2 VALUES (x, 'big'); ELSEIF x = 3 THEN INSERT INTO tm VALUES (x, 'three'); END IF; RETURN x; END //
CREATE FUNCTION fuv() RETURNS INT
BEGIN INSERT INTO t2 VALUES (@a, 'fuv'); SET @a = @a + 1; RETURN 1; END //
CREATE TRIGGER tb1 BEFORE INSERT ON tb FOR EACH ROW INSERT INTO t2 VALUES (NEW.a, 'b') //
CREATE TRIGGER tb2 AFTER INSERT ON tb FOR EACH ROW INSERT INTO t3 VALUES (NEW.a, 'a') //
CREATE PROCEDURE p_ins(x INT) INSERT INTO ti VALUES(x,concat('p',x)) //
CREATE PROCEDURE p_loop(n INT) BEGIN DECLARE i INT DEFAULT 0;
  lp: LOOP SET i = i + 1; IF i > n THEN LEAVE lp; END IF;
  IF i = 2 THEN ITERATE lp; END IF; insert into ti values(i,'l'); END LOOP; END //
CREATE PROCEDURE p_handler() BEGIN
  DECLARE EXIT HANDLER FOR SQLSTATE '45000' insert into ti values(2,'h');
  insert into ti values(1,'before'); SIGNAL SQLSTATE '45000'; insert into ti values(3,'never'); END //
CREATE PROCEDURE p_out(OUT o INT, INOUT io VARCHAR(10)) BEGIN SET o = 5; SET io = concat(io, 'x'); END //
CREATE PROCEDURE p_tx() BEGIN START TRANSACTION; insert into ti values(1,'a'); SAVEPOINT s1;
  insert into ti values(2,'b'); ROLLBACK TO s1; insert into ti values(3,'c'); COMMIT; END //
CREATE PROCEDURE p_ps(x INT) BEGIN SET @q = concat('insert into ti values(', x, ',''dyn'')');
  PREPARE st FROM @q; EXECUTE st; END //
CREATE PROCEDURE p_unsafe() BEGIN insert into tm values(1,uuid()); insert into ti select 1,2 from ti limit 1; END //
CREATE PROCEDURE p_n() insert into tm values(1,'n') //
CREATE PROCEDURE p_if() BEGIN IF fcond(5) = 5 THEN insert into ti values(1,'yes'); END IF; END //
DELIMITER ;
"""
X = "_latin1'x' COLLATE 'latin1_swedish_ci'"
XID = "Xid COMMIT /* xid=# */"


def session(flavor: str = "mariadb", mode: str = "STATEMENT") -> Session:
    catalog = SchemaCatalog(Flavor(flavor))
    catalog.load("set global enforce_gtid_consistency=OFF;" + SCHEMA)
    made = Session(server=Server.parse(flavor), objects=catalog, database="d")
    made.execute(f"SET SESSION binlog_format = {mode}")
    return made


def events(made: Session, *statements: str, rows: int | None = None) -> list[str]:
    """What the last of some statements appends, without the beginnings of groups."""
    for statement in statements[:-1]:
        made.execute(statement)
    found = made.execute(statements[-1], Outcome(rows=rows)).binlogs["binlog"].events
    return [f"{kind} {info}" for kind, info in found if info not in {"BEGIN GTID #", "BEGIN"}]


def query(text: str) -> str:
    return f"Query use `d`; {text}"


@pytest.mark.parametrize(
    "statement, logged",
    [
        ("select f1(1,'x')", [f"SELECT `d`.`f1`(1,{X})"]),
        ("do f1(1,'x'), fm(4)", [f"SELECT `d`.`f1`(1,{X})", "SELECT `d`.`fm`(4)"]),
        ("set @q = fm(1 + 1)", ["SELECT `d`.`fm`(2)"]),
        ("insert into ti values(f1(6,'i'),'c')", ["insert into ti values(f1(6,'i'),'c')"]),
        ("insert into tb values(1,'x')", ["insert into tb values(1,'x')"]),
        ("select fcond(1)", []),
    ],
)
def test_functions_and_triggers_in_statement_format(statement: str, logged: list[str]) -> None:
    found = events(session(), statement)
    assert found[: len(logged)] == [query(text) for text in logged]
    assert len(found) == (len(logged) + 1 if logged else 0)


def test_a_function_that_inserts_has_its_values_logged() -> None:
    assert events(session(), "select fai()") == [
        "Intvar LAST_INSERT_ID=#",
        "Intvar INSERT_ID=#",
        query("SELECT `d`.`fai`()"),
        XID,
    ]


def test_variables_that_a_function_reads() -> None:
    reads = "User var @`a`=2"
    call = query("SELECT `d`.`fuv`()")
    assert events(session(), "set @a = 2", "select fuv()") == [reads, reads, call, XID]
    assert events(session("mysql"), "set @a = 2", "select fuv()") == [reads, call, XID]


def test_rows_of_functions_and_triggers() -> None:
    inner = "insert into t2 values( NAME_CONST('x',6), NAME_CONST('y',_latin1'i' COLLATE 'latin1_swedish_ci'))"
    made = session(mode="ROW")
    found = events(made, "insert into ti values(f1(6,'i'),'c')")
    assert found[0] == f"Annotate_rows {inner}"
    assert found[1:] == [
        "Table_map table_id: # (d.ti)",
        "Table_map table_id: # (d.t3)",  # MariaDB's hash order, as measured
        "Table_map table_id: # (d.t2)",
        "Write_rows_v1 table_id: #",
        "Write_rows_v1 table_id: #",
        "Write_rows_v1 table_id: # flags: STMT_END_F",
        XID,
    ]
    found = events(made, "insert into tb values(2,'x'),(3,'y')", rows=2)
    assert found[0] == "Annotate_rows INSERT INTO t2 VALUES (NEW.a, 'b')"
    assert [line.split()[0] for line in found[1:]] == ["Table_map"] * 3 + ["Write_rows_v1"] * 6 + [
        "Xid"
    ]


def test_a_cache_without_rows_is_dropped_by_mariadb_only() -> None:
    assert events(session(mode="ROW"), "select fcond(4)") == [
        "Table_map table_id: # (d.t2)",
        "Write_rows_v1 table_id: # flags: STMT_END_F",
        XID,
    ]
    found = events(session("mysql", "ROW"), "select fcond(4)")
    assert found[:2] == ["Table_map table_id: # (d.tm)", "Query COMMIT"]


def test_cascades_are_rows_in_mysql_only() -> None:
    found = events(session("mysql", "ROW"), "delete from p where a=1", rows=1)
    flags = "USE_SQL_FOREIGN_KEY_F"
    assert found[2:] == [
        f"Delete_rows table_id: # flags: NO_FOREIGN_KEY_CHECKS_F {flags}",
        f"Delete_rows table_id: # flags: STMT_END_F {flags}",
        XID,
    ]
    maria = events(session(mode="ROW"), "delete from p where a=1", rows=1)
    assert sum(line.startswith("Delete_rows") for line in maria) == 1


@pytest.mark.parametrize(
    "statement, logged",
    [
        (
            "call p_ins(430)",
            ["INSERT INTO ti VALUES( NAME_CONST('x',430),concat('p', NAME_CONST('x',430)))"],
        ),
        (
            "call p_loop(3)",
            [
                "insert into ti values( NAME_CONST('i',1),'l')",
                "insert into ti values( NAME_CONST('i',3),'l')",
            ],
        ),
        ("call p_handler()", ["insert into ti values(1,'before')", "insert into ti values(2,'h')"]),
        ("call p_ps(4)", ["insert into ti values(4,'dyn')"]),
    ],
)
def test_calls_are_unrolled(statement: str, logged: list[str]) -> None:
    expected = [line for text in logged for line in (query(text), XID)]
    assert events(session(), statement) == expected


def test_transactions_in_procedures() -> None:
    assert events(session(), "call p_tx()") == [
        query("insert into ti values(1,'a')"),
        "Query SAVEPOINT `s1`",
        query("insert into ti values(3,'c')"),
        XID,
    ]


def test_a_condition_logs_what_its_function_does_at_once() -> None:
    assert events(session(), "begin", "call p_if()") == [
        "Gtid GTID #",
        query("SELECT `d`.`fcond`(5)"),
    ]


def test_out_parameters() -> None:
    assert events(
        session(), "set @io = 'z'", "call p_out(@o, @io)", "insert into ti values(@o,@io)"
    )[:2] == ["User var @`o`=5", "User var @`io`=_latin1 X'7A78' COLLATE latin1_swedish_ci"]


def test_notes_of_a_call_come_once_in_bit_order() -> None:
    result = session().execute("call p_unsafe()")
    assert [note.reason for note in result.notes] == [
        "ER_BINLOG_UNSAFE_LIMIT",
        "ER_BINLOG_UNSAFE_SYSTEM_FUNCTION",
    ]


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_a_procedure_remembers_that_it_was_unsafe(flavor: str) -> None:
    made = session(flavor)
    for statement in ("begin", "insert into ti values(1,'t')"):
        made.execute(statement)
    assert made.execute("call p_n()").notes
    made.execute("commit")
    assert made.execute("call p_n()").notes
    made.execute("create procedure other() select 1")
    assert not made.execute("call p_n()").notes


@pytest.mark.parametrize(
    "statements, logged",
    [
        (
            ("execute immediate 'insert into ti values(?,?)' using 450,'z'",),
            "insert into ti values(450,'z')",
        ),
        (
            (
                "set @i=5, @s='it''s'",
                "prepare s from ' insert into ti values( ?,?) ; '",
                "execute s using @i,@s",
            ),
            "insert into ti values( 5,'it\\'s')",
        ),
        (
            ("set @q='insert into ti values(1,''q'')'", "prepare s from @q", "execute s"),
            "insert into ti values(1,'q')",
        ),
    ],
)
def test_prepared_statements(statements: tuple[str, ...], logged: str) -> None:
    assert events(session(), *statements) == [query(logged), XID]


def test_a_prepared_statement_that_is_gone() -> None:
    made = session()
    made.execute("prepare s from 'insert into ti values(1,1)'")
    made.execute("deallocate prepare s")
    result = made.execute("execute s")
    assert result.error is not None
    assert result.error.errno == 1243


@pytest.mark.parametrize(
    "flavor, value, info",
    [
        ("mariadb", "5", "@`v`=5"),
        ("mariadb", "'u'", "@`v`=_utf8mb4 X'75' COLLATE utf8mb4_general_ci"),
        ("mysql", "'u'", "@`v`=_utf8mb4 0x75 COLLATE utf8mb4_0900_ai_ci"),
        ("mariadb", "null", "@`v`=NULL"),
        ("mariadb", "-1.25", "@`v`=-1.25"),
        ("mysql", "18446744073709551615", "@`v`=18446744073709551615"),
        ("mariadb", "0x4142", "@`v`=_binary X'4142' COLLATE binary"),
        (
            "mariadb",
            "date'2020-01-02'",
            "@`v`=_latin1 X'323032302D30312D3032' COLLATE latin1_swedish_ci",
        ),
    ],
)
def test_user_variables(flavor: str, value: str, info: str) -> None:
    assert (
        events(session(flavor), f"set @v = {value}", "insert into ti values(1,@v)")[0]
        == f"User var {info}"
    )


def test_update_looks_at_where_first() -> None:
    found = events(session(), "set @i=1, @s=2", "update ti set a=@i where b=@s", rows=1)
    assert found[:2] == ["User var @`s`=2", "User var @`i`=1"]


def test_all_values_of_set_are_read_before_any_is_set() -> None:
    assert (
        events(session(), "set @a=1, @b=@a+1", "insert into ti values(@b,1)")[0]
        == "User var @`b`=NULL"
    )


def test_an_endless_loop_ends() -> None:
    made = session()
    made.execute("create procedure endless() begin while 1 do set @z = 1; end while; end")
    assert made.execute("call endless()").error is None


def test_a_procedure_that_is_not_there() -> None:
    error = session().execute("call nosuch()").error
    assert error is not None
    assert (error.errno, error.sqlstate, error.message) == (
        1305,
        "42000",
        "PROCEDURE d.nosuch does not exist",
    )


def test_a_stated_error_is_that_of_the_last_statement() -> None:
    result = session().execute("call p_tx()", Outcome(error=1213))
    assert result.error is not None
    assert result.error.errno == 1213
    result = session().execute("call p_loop(3)", Outcome(error=1062))
    assert [info for _, info in result.binlogs["binlog"].events if "NAME_CONST" in info] == [
        "use `d`; insert into ti values( NAME_CONST('i',1),'l')"
    ]


def test_blocks_outside_of_routines() -> None:
    assert events(
        session(), "begin not atomic declare x int default 3; insert into ti values(x,'b'); end"
    ) == [
        query("insert into ti values( NAME_CONST('x',3),'b')"),
        XID,
    ]


_BODY = (
    ' BEGIN {set} INSERT INTO "ti" VALUES (3, {value}); CREATE TEMPORARY TABLE "tmp" (a INT);'
    ' DROP TEMPORARY TABLE "tmp"; END'
)


@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_programs_run_as_they_were_made(flavor: str) -> None:
    made = session(flavor)
    made.execute("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES', NAMES latin1")
    made.execute("CREATE PROCEDURE p_made(x VARCHAR(9))" + _BODY.format(set="", value="x"))
    made.execute('CREATE TRIGGER g BEFORE INSERT ON "tm" FOR EACH ROW INSERT INTO "t2" SELECT 1, 2')
    made.execute("SET sql_mode = 'ANSI_QUOTES'")
    body = _BODY.format(set="SET sql_mode = '';", value="'x'")
    made.execute("CREATE PROCEDURE p_sets()" + body)
    made.execute("SET sql_mode = '', NAMES utf8mb4")
    collation = {"mariadb": "latin1_swedish_ci", "mysql": "utf8mb4_0900_ai_ci"}[flavor]
    shown = f"_{collation.partition('_')[0]}'x\\y''' COLLATE '{collation}'"
    assert queries(made, "CALL p_made('x\\\\y\\'')") == [
        f"INSERT INTO \"ti\" VALUES (3,  NAME_CONST('x',{shown}))",
        'CREATE TEMPORARY TABLE "tmp" (a INT)',
        'DROP TEMPORARY TABLE "tmp" /* generated by server */',
    ]
    assert queries(made, "CALL p_sets()") == [
        "INSERT INTO \"ti\" VALUES (3, 'x')",
        'CREATE TEMPORARY TABLE "tmp" (a INT)',
        "DROP TEMPORARY TABLE `tmp` /* generated by server */",
    ]
    assert not made.dialect.ansi_quotes, "it is the session's own again"
    assert queries(made, 'INSERT INTO tm VALUES (1, "x")') == ['INSERT INTO tm VALUES (1, "x")']


def test_routines_of_sql_mode_oracle() -> None:
    made = session()
    made.execute("SET sql_mode = 'ORACLE'")
    made.execute(
        "CREATE PROCEDURE p_oracle(x VARCHAR2(9)) AS n INT := 5; y VARCHAR2(9) := x || NULL;"
        ' BEGIN INSERT INTO "ti" VALUES (n, x); INSERT INTO t2 VALUES (n, y); END p_oracle'
    )
    made.execute("SET sql_mode = ''")
    constant = "_latin1'a' COLLATE 'latin1_swedish_ci'"
    first, second = queries(made, "CALL p_oracle('a')")
    assert first == f"INSERT INTO \"ti\" VALUES ( NAME_CONST('n',5),  NAME_CONST('x',{constant}))"
    assert second == "INSERT INTO t2 VALUES ( NAME_CONST('n',5),  NAME_CONST('y',#))", (
        "NULL is an empty string there"
    )


def queries(made: Session, statement: str) -> list[str]:
    """The texts that a statement appends."""
    result = made.execute(statement)
    assert result.unanalysed is None
    return [
        one.info.removeprefix("use `d`; ")
        for one in result.binlogs["binlog"].events
        if one.type == "Query" and one.info != "BEGIN"
    ]

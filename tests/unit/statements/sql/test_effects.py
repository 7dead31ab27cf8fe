"""What statements do, by the vectors in `tests/vectors/effects`."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from binlane.names import TableName
from binlane.statements.sql.facts import StatementEffects
from binlane.statements.sql.statement_kinds import DDL_KINDS, StatementKind
from binlane.statements.sql.tokens import TokenKind
from tests.reading import analyse, read

VECTORS = Path(__file__).parents[3] / "vectors/effects"


def _cases() -> list[tuple[str, ...]]:
    return [
        tuple(part.strip() for part in line.split("|", 4))
        for file in sorted(VECTORS.glob("*.txt"))
        for line in file.read_text().splitlines()
        if not line.startswith("#")
    ]


def _plain(tables: tuple[TableName, ...]) -> str:
    return ", ".join(table.plain for table in tables)


@pytest.mark.rule("000:accounts")
@pytest.mark.rule("000:accounts-grant-objects")
@pytest.mark.rule("000:default-database")
@pytest.mark.parametrize("kind, written, read, databases, statement", _cases())
def test_effects(kind: str, written: str, read: str, databases: str, statement: str) -> None:
    effects = analyse(statement, database="d")
    assert effects.stopped_at is None
    assert effects.kind is StatementKind[kind]
    assert _plain(effects.writes) == written
    assert _plain(effects.reads) == read
    assert ", ".join(effects.databases) == databases


def test_the_vectors_have_every_kind() -> None:
    missing = {kind.name for kind in StatementKind} - {case[0] for case in _cases()}
    assert missing == {"UNKNOWN"}


def _t(name: str) -> TableName:
    return TableName("d", name)


@pytest.mark.rule("003:rename")
@pytest.mark.rule("003:rename-chain")
def test_rename_swaps_two_tables() -> None:
    effects = analyse("RENAME TABLE t1 TO tmp, t2 TO t1, tmp TO t2", database="d")
    assert effects.renames == (
        (_t("t1"), _t("tmp")),
        (_t("t2"), _t("t1")),
        (_t("tmp"), _t("t2")),
    )
    assert effects.renamed_tables == (_t("t1"), _t("t2"))
    assert set(effects.net_renames) == {(_t("t1"), _t("t2")), (_t("t2"), _t("t1"))}


def test_a_rename_there_and_back_is_none() -> None:
    effects = analyse("RENAME TABLE a TO b, b TO a", database="d")
    assert effects.renamed_tables == (_t("a"),)
    assert effects.net_renames == ()
    assert effects.writes == (_t("a"),)


def test_alter_table_renames_too() -> None:
    effects = analyse("ALTER TABLE `crm`.a RENAME TO b, ADD COLUMN c INT", database="d")
    assert effects.renames == ((TableName("crm", "a"), _t("b")),)


def test_drops_are_the_tables_that_are_gone() -> None:
    assert analyse("DROP TABLE a, x.b", database="d").drops == (_t("a"), TableName("x", "b"))
    assert analyse("ALTER TABLE a CONVERT TABLE b TO PARTITION p", database="d").drops == (_t("b"),)
    assert analyse("TRUNCATE a", database="d").drops == ()


def test_objects_are_named_with_their_database() -> None:
    assert analyse("DROP VIEW a, x.b", database="d").objects == (_t("a"), TableName("x", "b"))
    trigger = analyse("CREATE TRIGGER g AFTER INSERT ON x.t FOR EACH ROW SET @a = 1", database="d")
    assert trigger.objects == (_t("g"),)


def test_calls_are_known_with_a_database_or_by_call() -> None:
    assert analyse("CALL p(x.f(1))", database="d").calls == (_t("p"), TableName("x", "f"))
    assert analyse("SELECT `x`.`f`(a.b) FROM a", database="d").calls == (TableName("x", "f"),)


@pytest.mark.parametrize(
    "statement, is_temporary, if_exists",
    [
        ("CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT)", True, True),
        ("DROP TEMPORARY TABLE IF EXISTS x.t", True, True),
        ("DROP TABLE x.t", False, False),
        ("CREATE DATABASE IF NOT EXISTS x", False, True),
    ],
)
def test_facts(statement: str, *, is_temporary: bool, if_exists: bool) -> None:
    effects = analyse(statement, database="d")
    assert effects.is_temporary is is_temporary
    assert effects.if_exists is if_exists


@pytest.mark.parametrize(
    "statement, token",
    [
        ("DROP TABLE a b", "b"),
        ("SELECT * FROM { OJ a LEFT JOIN b ON 1", "END"),
        ("EXECUTE IMMEDIATE 1 +", "END"),
        ("CREATE PROCEDURE p() BEGIN EXECUTE; END", ";"),
        ("UPDATE a SET a = 1, (", "("),
        ("UPDATE a JOIN b SET c.x = 1", "c.x"),
        ("DELETE HISTORY FROM a JOIN history", "JOIN"),
        ("FROBNICATE t", "FROBNICATE"),
        ("INSERT INTO a.b.c VALUES (1)", "."),
        ('INSERT INTO "t" VALUES (1)', '"t"'),
        ("SELECT * FROM 'shop'.t", "'shop'"),
        ("DROP TABLE a; DROP TABLE b", "DROP"),
        ("DELETE FROM a, b", ","),
        ("UPDATE SET a = 1", "SET"),
        ("UPDATE t SET a.b.c.d = 1", "."),
        ("DELETE a.b.c FROM t", "FROM"),
        ("WITH x AS (SELECT 1) SHOW TABLES", "SHOW"),
        ("INSERT INTO t FROM u", "FROM"),
        ("RENAME COLUMN a TO b", "COLUMN"),
        ("OPTIMIZE t", "t"),
        ("CREATE PROCEDURE p() BEGIN SELECT 1;", "END"),
        ("CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR (1) BEGIN END; END", "("),
        ("CREATE PROCEDURE p() COMMENT 1 SELECT 1", "1"),
        ("CREATE SPATIAL t", "t"),
        ("INSERT INTO t VALUES (1", "END"),
        ("INSERT INTO t VALUES (1))", ")"),
        ("SELECT ((a FROM t", "FROM"),
        ("SELECT 'abc", "'abc"),
        ("SELECT 1 /* abc", "/* abc"),
    ],
)
def test_what_is_not_understood_is_said(statement: str, token: str) -> None:
    effects = analyse(statement, database="d")
    assert effects.stopped_at is not None
    assert (effects.stopped_at.text or effects.stopped_at.kind.name) == token


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("SELECT * FROM " + "(SELECT * FROM " * 62 + "t" + ") x" * 62, "d.t"),
        ("SELECT " + "(SELECT " * 62 + "max(a) FROM t" + ")" * 62, "d.t"),
        ("SELECT * FROM " + "(" * 100 + "t" + ")" * 100, "d.t"),
        ("SELECT " + "f(" * 100 + "1" + ")" * 100, ""),
        ("WITH a AS (" * 62 + "SELECT 1 FROM t" + ") SELECT 2 FROM a" * 62, "d.t"),
        ("BEGIN NOT ATOMIC " + "BEGIN " * 120 + "END; " * 120 + "END", ""),
        ("IF 1 THEN " * 100 + "DO (SELECT a FROM t)" + "; END IF" * 100, "d.t"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_nested_deeply_is_understood(statement: str, read: str) -> None:
    effects = analyse(statement, database="d")
    assert effects.stopped_at is None
    assert _plain(effects.reads) == read


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM " + "(SELECT * FROM " * 10_000 + "t" + ") x" * 10_000,
        "SELECT " + "(SELECT " * 10_000 + "max(a) FROM t" + ")" * 10_000,
        "SELECT " + "f(" * 10_000 + "1" + ")" * 10_000,
    ],
    ids=lambda text: text[:20],
)
def test_what_is_nested_deeper_is_not_analysed(statement: str) -> None:
    facts = read(statement, database="d")
    assert facts.effects.stopped_at is not None
    assert facts.error is None


def test_what_was_found_before_is_kept() -> None:
    effects = analyse("DROP TABLE a b", database="d")
    assert (effects.kind, effects.writes) == (StatementKind.DROP_TABLE, (_t("a"),))


def test_ansi_quotes_make_names() -> None:
    effects = analyse('ALTER TABLE "a ""b" RENAME TO "c"', database="d", ansi_quotes=True)
    assert effects.renames == ((_t('a "b'), _t("c")),)
    assert analyse('INSERT INTO t VALUES ("x")', database="d").stopped_at is None


def test_a_backslash_is_a_character_without_escapes() -> None:
    statement = r"INSERT INTO t VALUES ('\'), ((SELECT a FROM u)) -- '"
    assert _plain(analyse(statement, database="d", no_backslash_escapes=True).reads) == "d.u"
    assert analyse(statement, database="d").stopped_at is not None


def test_ddl_is_what_every_mode_logs_as_a_statement() -> None:
    assert StatementKind.CREATE_TABLE_SELECT in DDL_KINDS
    assert StatementKind.ACCOUNT in DDL_KINDS
    assert StatementKind.INSERT not in DDL_KINDS
    assert StatementKind.SAVEPOINT not in DDL_KINDS


WORDS = st.sampled_from(
    (
        *("SELECT", "FROM", "WHERE", "WITH", "AS", "UNION", "JOIN", "ON", "VALUES", "CASE", "FOR"),
        *("INSERT", "INTO", "UPDATE", "SET", "DELETE", "NEXT", "VALUE", "nextval", "REFERENCES"),
        *("CREATE", "ALTER", "DROP", "RENAME", "TABLE", "VIEW", "TRIGGER", "PROCEDURE", "EVENT"),
        *("TO", "LIKE", "BEGIN", "END", "IF", "THEN", "DECLARE", "LOOP", "DO", "/*!", "*/"),
        *("(", ")", ",", ".", ";", "=", ":", "*", "@a", "'s'", '"q"', "`n`", "1", "t", "d.u"),
    )
)


@given(st.one_of(st.text(), st.lists(WORDS, max_size=20).map(" ".join)))
@example("ALTER TRIGGER t")
@example("ALTER INDEX t")
def test_any_text_has_effects(statement: str) -> None:
    effects = analyse(statement, database="d")
    assert isinstance(effects, StatementEffects)
    if effects.kind is StatementKind.UNKNOWN:
        assert effects.stopped_at is not None
    if effects.stopped_at is not None and effects.stopped_at.kind is not TokenKind.END:
        assert effects.stopped_at.text in statement
    assert not set(effects.reads) & set(effects.writes)

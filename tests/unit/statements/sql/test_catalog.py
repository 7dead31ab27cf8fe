from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.log.codec.buffer import Reader
from binlane.log.codec.columns import Column, value_decoder
from binlane.log.codec.logical_types import LogicalType
from binlane.log.codec.query import QueryEvent
from binlane.log.codec.rows import TableMapEvent
from binlane.log.codec.types import ColumnType, Flavor
from binlane.names import TableName
from binlane.statements.sql.catalog import ToldStatement
from binlane.statements.sql.logged_objects import LoggedObjects
from binlane.statements.sql.logged_statements import LoggedStatement
from tests.build import event, table_map

INT = ColumnType.LONG
WORDS = (
    "CREATE ALTER DROP RENAME TABLE DATABASE t u a b INT TEXT ( ) , ; ADD CHANGE MODIFY COLUMN TO "
    "LIKE SELECT CHARACTER SET latin1 COLLATE x PARTITION CONVERT AFTER FIRST ' ` /*! */ IF EXISTS "
    "SYSTEM VERSIONING UNIQUE 1 . = AS"
)
T = TableName("shop", "t")


def catalog(*statements: str) -> LoggedObjects:
    made = LoggedObjects()
    for statement in statements:
        made.apply(statement, database="shop")
    return made


def columns(
    made: LoggedObjects, mapped: TableMapEvent, flavor: Flavor = Flavor.MARIADB
) -> tuple[Column, ...]:
    return made.columns(mapped, flavor=flavor)


def names(made: LoggedObjects, *types: int, table: str = "t") -> list[str | None]:
    return [column.name for column in columns(made, table_map(*types, table=table))]


def test_names_and_signs_come_from_the_schema() -> None:
    made = catalog("CREATE TABLE t (a INT UNSIGNED, `b c` BIGINT)")
    found = columns(made, table_map(INT, ColumnType.LONGLONG))
    assert [(each.name, each.is_unsigned) for each in found] == [("a", True), ("b c", False)]
    assert all(each.has_schema for each in found)
    assert names(made, INT, table="unknown") == [None]


@pytest.mark.parametrize(
    ("definition", "types", "metadata", "reason"),
    [
        ("a INT", (INT, INT), b"", "the log has 2 columns, the schema 1"),
        ("a INT, b INT", (INT,), b"", "the log has 1 columns, the schema 2"),
        ("a INT", (ColumnType.LONGLONG,), b"", "column 1, a: it is LONGLONG in the log, INT in"),
        ("a DECIMAL(5,2)", (ColumnType.NEWDECIMAL,), b"\x05\x03", r"length in the log than DECI"),
        ("a DATETIME(3)", (ColumnType.DATETIME2,), b"\x00", r"another length .* DATETIME\(3\)"),
        ("a BIT(9)", (ColumnType.BIT,), b"\x00\x01", "another length"),
        ("a UUID", (ColumnType.STRING,), b"\xfe\x04", "another length"),
        ("a INET4", (ColumnType.STRING,), b"\xfe\x10", "another length"),
        ("a ENUM('x')", (ColumnType.STRING,), b"\xf7\x02", "another length"),
        ("a SET('x')", (ColumnType.STRING,), b"\xf8\x02", "another length"),
    ],
)
def test_a_schema_that_does_not_fit_is_not_used_and_told(
    definition: str, types: tuple[int, ...], metadata: bytes, reason: str
) -> None:
    made = catalog(f"CREATE TABLE t ({definition})")
    found = columns(made, table_map(*types, metadata=metadata))
    assert all(each.name is None and not each.has_schema for each in found)
    assert list(made.misfits) == [T]
    assert re.search(reason, made.misfits[T])


def test_what_the_log_says_counts_more() -> None:
    made = catalog("CREATE TABLE t (a INT, b TEXT CHARACTER SET greek)")
    # Names a and b; the first is unsigned, the second latin1.
    told = b"\x01\x01\x80" + b"\x02\x01\x08" + b"\x04\x04\x01a\x01b"
    mapped = table_map(INT, ColumnType.BLOB, metadata=b"\x02", optional_metadata=told)
    found = columns(made, mapped)
    assert [(each.is_unsigned, each.collation_id) for each in found] == [(True, None), (None, 8)]
    renamed = replace(mapped, optional_metadata=told.replace(b"\x01b", b"\x01c"))
    assert [each.name for each in columns(made, renamed)] == ["a", "c"]
    assert "the log calls it c" in made.misfits[T]


def test_members_and_logical_types() -> None:
    made = catalog("CREATE TABLE t (e ENUM('a ', 'b'), u UUID, j JSON)")
    mapped = table_map(
        ColumnType.STRING, ColumnType.STRING, ColumnType.BLOB, metadata=b"\xf7\x01\xfe\x10\x04"
    )
    member, identifier, document = columns(made, mapped)
    assert member.members == ("a", "b")
    assert identifier.logical is LogicalType.UUID
    assert document.logical is LogicalType.JSON
    assert columns(made, mapped, Flavor.MYSQL)[2].logical is None


def test_a_value_beyond_the_members_of_a_schema_is_its_number() -> None:
    made = catalog("CREATE TABLE t (e ENUM('a', 'b'), s SET('a', 'b'))")
    mapped = table_map(ColumnType.STRING, ColumnType.STRING, metadata=b"\xf7\x01\xf8\x01")
    member, members = map(value_decoder, columns(made, mapped))
    assert [member(Reader(b"\x02")), member(Reader(b"\x03"))] == ["b", 3]
    assert [members(Reader(b"\x03")), members(Reader(b"\x04"))] == [("a", "b"), 4]


def test_hidden_columns_of_the_servers() -> None:
    versioned = catalog("CREATE TABLE t (a INT) WITH SYSTEM VERSIONING")
    mapped = table_map(INT, ColumnType.TIMESTAMP2, ColumnType.TIMESTAMP2, metadata=b"\x06\x06")
    assert [each.name for each in columns(versioned, mapped)] == ["a", "row_start", "row_end"]
    hashed = catalog("CREATE TABLE t (a INT, UNIQUE (a))")
    assert names(hashed, INT) == ["a"]
    assert names(hashed, INT, ColumnType.LONGLONG) == ["a", "DB_ROW_HASH_1"]
    assert names(catalog("CREATE TABLE t (a INT)"), INT, ColumnType.LONGLONG) == [None, None]
    keyless = replace(table_map(ColumnType.LONGLONG, INT), flags=5)
    assert [each.name for each in columns(catalog("CREATE TABLE t (a INT)"), keyless)] == [
        "my_row_id",
        "a",
    ]


def test_tables_follow_the_statements() -> None:
    made = catalog(
        "CREATE TABLE t (a INT)",
        "CREATE TABLE u LIKE t",
        "CREATE TABLE IF NOT EXISTS t (z INT)",
        "RENAME TABLE t TO tmp, u TO t, tmp TO u",
        "ALTER TABLE t ADD b INT, RENAME TO crm.t",
        "CREATE TABLE gone (a INT)",
        "DROP TABLE gone, missing",
        "CREATE SEQUENCE s",
        "CREATE TEMPORARY TABLE hidden (a INT)",
        "CREATE TABLE like_hidden LIKE hidden",
        "CREATE TABLE chosen (a INT) SELECT 1 AS b",
    )
    assert set(made.tables) == {
        TableName("shop", "u"),
        TableName("crm", "t"),
        TableName("shop", "s"),
    }
    made.apply("CREATE DATABASE IF NOT EXISTS crm", database="shop")
    assert TableName("crm", "t") in made.tables
    made.apply("DROP DATABASE crm", database="shop")
    assert TableName("crm", "t") not in made.tables
    made.apply("CREATE OR REPLACE DATABASE shop", database="shop")
    assert made.tables == ()


def test_foreign_keys_follow_the_columns_of_both_tables() -> None:
    made = catalog(
        "CREATE TABLE p (id INT PRIMARY KEY, code INT UNIQUE)",
        "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (id))",
        "CREATE TABLE t (id INT PRIMARY KEY, above INT, FOREIGN KEY (above) REFERENCES t (id))",
        "ALTER TABLE p RENAME COLUMN id TO code, CHANGE code id INT",
        "ALTER TABLE c CHANGE a b INT",
        "ALTER TABLE t RENAME COLUMN id TO above, RENAME COLUMN above TO id",
    )
    found = [
        key
        for name in ("c", "t")
        for key in made.store.tables[TableName("shop", name)].foreign_keys
    ]
    assert [(key.columns, key.parent_columns) for key in found] == [
        (("b",), ("code",)),
        (("id",), ("above",)),
    ]


def test_triggers_go_on_with_tables_that_change_their_names() -> None:
    made = LoggedObjects()
    for text in (
        "CREATE TABLE t (a INT)",
        "CREATE TABLE u (a INT)",
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1",
        "RENAME TABLE t TO x, u TO t, x TO u",
    ):
        made.follow(LoggedStatement(text=text, database="shop", sql_mode=0))
    assert made.is_told(TableName("shop", "u"))
    assert not made.is_plain(TableName("shop", "u"))


def test_a_statement_that_is_not_understood_makes_its_table_unknown() -> None:
    made = catalog("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT AFTER nowhere")
    assert made.tables == ()


def test_a_change_is_seen_at_once() -> None:
    made = catalog("CREATE TABLE t (a INT)")
    assert names(made, INT) == ["a"]
    assert made.apply("ALTER TABLE t CHANGE a b INT", database="shop")
    assert names(made, INT) == ["b"]
    assert not made.apply("INSERT INTO t VALUES ('DROP TABLE t')", database="shop")
    assert not made.apply("/* DROP */ SELECT 1", database="shop")
    assert made.apply("/* c */ -- d\n /*!50000 drop */ table t", database="shop")
    assert names(made, INT) == [None]


def test_a_script_has_default_databases() -> None:
    made = LoggedObjects()
    made.load("CREATE TABLE a (x INT); USE `c``d`; CREATE TABLE b (x INT);", database="first")
    assert set(made.tables) == {TableName("first", "a"), TableName("c`d", "b")}
    made.load_statements([ToldStatement("third", "CREATE TABLE c (x INT)")])
    assert TableName("third", "c") in made.tables


def test_the_database_decides_the_character_set() -> None:
    made = catalog("CREATE DATABASE shop CHARACTER SET greek", "CREATE TABLE t (a TEXT)")
    (text,) = columns(made, table_map(ColumnType.BLOB, metadata=b"\x02"))
    assert text.collation_id == 25
    unknown = catalog("CREATE TABLE t (a TEXT)")
    (text,) = columns(unknown, table_map(ColumnType.BLOB, metadata=b"\x02"))
    assert text.collation_id is None


def query(text: str, *, database: str = "shop", status_vars: bytes = b"") -> QueryEvent:
    return QueryEvent(
        thread_id=1,
        execution_time=0,
        error_code=0,
        status_vars=status_vars,
        database=database.encode(),
        query=text.encode(),
    )


def test_a_log_is_followed_with_what_its_events_say_of_their_sessions() -> None:
    made = LoggedObjects()
    # The server's character set is latin5, the sql_mode ANSI_QUOTES.
    session = b"\x01" + (4).to_bytes(8, "little") + b"\x04\x2d\x00\x2d\x00\x1e\x00"
    made.feed(event(query("CREATE DATABASE shop", status_vars=session)))
    assert made.feed(event(query('CREATE TABLE "t" ("a" TEXT)', status_vars=session)))
    (text,) = columns(made, table_map(ColumnType.BLOB, metadata=b"\x02"))
    assert (text.name, text.collation_id) == ("a", 30)
    assert not made.feed(event(query("BEGIN")))


@given(
    st.lists(
        st.sampled_from(WORDS.split()),
        max_size=20,
    )
)
def test_no_statement_is_an_error(words: list[str]) -> None:
    made = catalog("CREATE TABLE t (a INT, b TEXT)", "CREATE TABLE u (a INT)")
    for start in (
        "",
        "CREATE TABLE t (",
        "ALTER TABLE t ",
        "CREATE DATABASE x ",
        "ALTER DATABASE ",
    ):
        made.apply(start + " ".join(words), database="shop")

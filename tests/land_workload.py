"""Random sessions of a server whose log is landed: all column types, rows and DDL of every kind.

What tables there are is asked of the server, not remembered, so that statements may fail. Most of
what is made can be followed; what cannot (rows of statements, partitions that are dropped, ...) is
rare, and there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from binlane.names import TableName, quote

DATABASES: Final = ("shop", "crm")
_NAMES: Final = ("a", "b", "c", "d", "e", "a_b", "my.t", "Größe")
POOL: Final = tuple(TableName(database, name) for database in DATABASES for name in _NAMES)
SESSIONS: Final = 3
RECONNECT: Final = "-- reconnect"
"""Stands where a statement would; the session ends, and a new one takes its place."""

_SETUP: Final = (
    "SET time_zone = '+00:00', sql_mode = 'STRICT_TRANS_TABLES'",
    "SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1",
    # MySQL knows no less.
    "SET lock_wait_timeout = 0, innodb_lock_wait_timeout = 0",
    "USE shop",
)
_MODES: Final = (
    *("STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "", "", "NO_ENGINE_SUBSTITUTION"),
    "NO_AUTO_VALUE_ON_ZERO",
    "STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE",
    *("ALLOW_INVALID_DATES", "PAD_CHAR_TO_FULL_LENGTH", "ANSI_QUOTES"),
)
_MARIADB_LOGS: Final = (
    *("SET binlog_alter_two_phase = 1", "SET GLOBAL log_bin_compress = 1"),
    *("SET binlog_alter_two_phase = 0", "SET GLOBAL log_bin_compress = 0"),
    "SET binlog_annotate_row_events = 0",
)
_MYSQL_LOGS: Final = (
    *("SET binlog_transaction_compression = 1", "SET binlog_transaction_compression = 0"),
    *("SET sql_generate_invisible_primary_key = 1", "SET sql_generate_invisible_primary_key = 0"),
    "SET binlog_rows_query_log_events = 1",
)
_CHARSETS: Final = ("utf8mb4", "utf8mb4", "utf8mb3", "latin1", "latin2", "cp1251", "ascii", "ucs2")
_OF_CHARSETS: Final = {
    "latin1": ("äöüß", "naïve €"),
    "latin2": ("ąęłż",),
    "cp1251": ("Привет",),
    "ascii": (),
    "utf8mb4": ("äöüß", "Ωμέγα", "Привет", "日本", "😀"),
}
_WORDS: Final = (
    "",
    "a",
    "B",
    "abc",
    "abc ",
    "x,y",
    "it''s",
    "10",
    "-7",
    "a\\\\b",
    "Z" * 9,
    "2020-01-01",
)
_DATES: Final = ("2020-02-29", "1999-12-31", "2038-01-19", "1970-01-02", "9999-12-31")
_TIMES: Final = ("00:00:00", "23:59:59.999999", "12:30:00.5", "04:05:06")
_DOCUMENTS: Final = (
    *("{}", "[]", "null", "1", "1.5", '"x"', "true", "[1, 2, [3]]", '{"a": {"b": [1, "ä"]}}'),
    *('{"big": 18446744073709551615, "e": 1e20}', '[-1, 70000, 5000000000, "' + "y" * 200 + '"]'),
)
_NUMBERS: Final = ("0", "1", "-1.5", "2.25", "0.1", "12.34", "-0.005", "999", "1e3")
_BITS: Final = ("b'0'", "b'1'", "b'101'", "1", "b'1011010100101'")
_BYTES: Final = ("x'00ff'", "x''", "'abc'", "x'0a0d00'", "'a '", "REPEAT('b', 20)")
_BYTES_TYPES: Final = frozenset({"binary", "varbinary", "blob", "tinyblob", "longblob"})
_INTEGERS: Final = {"tinyint": 7, "smallint": 15, "mediumint": 23, "int": 31, "bigint": 63}
_MEMBERS: Final = re.compile(r"'((?:[^']|'')*)'")

# Weight and type, of both servers.
_TYPES: Final = (
    *((3, "INT"), (1, "INT UNSIGNED"), (2, "BIGINT"), (1, "BIGINT UNSIGNED"), (1, "TINYINT(1)")),
    *((1, "TINYINT UNSIGNED"), (1, "SMALLINT"), (1, "MEDIUMINT"), (1, "MEDIUMINT UNSIGNED")),
    (1, "INT(5) ZEROFILL"),
    *((2, "DECIMAL(10,2)"), (1, "DECIMAL(30,10)"), (1, "DECIMAL(5,0)"), (1, "DECIMAL(60,4)")),
    *((1, "FLOAT"), (2, "DOUBLE"), (1, "BIT(1)"), (1, "BIT(13)"), (1, "BIT(64)"), (1, "YEAR")),
    *((1, "DATE"), (1, "DATETIME"), (1, "DATETIME(6)"), (1, "TIMESTAMP NULL"), (1, "TIME")),
    *((1, "TIMESTAMP(3) NULL"), (1, "TIME(6)"), (4, "VARCHAR(40)"), (1, "VARCHAR(300)")),
    *((1, "CHAR(12)"), (2, "TEXT"), (1, "LONGTEXT"), (1, "TINYTEXT"), (1, "BINARY(6)")),
    *((1, "VARBINARY(20)"), (1, "BLOB"), (2, "JSON"), (1, "GEOMETRY"), (1, "POINT")),
    *((2, "ENUM('x','y','z')"), (2, "SET('p','q','r')"), (1, "ENUM('ä','ß','it''s')")),
)
_MARIADB_TYPES: Final = (
    *((1, "UUID"), (1, "INET6"), (1, "INET4"), (1, "TEXT COMPRESSED"), (1, "VECTOR(3) NOT NULL")),
)
_MYSQL_TYPES: Final = ((1, "VECTOR(3)"),)
_KEYED: Final = (
    "k INT AUTO_INCREMENT PRIMARY KEY",
    "k INT PRIMARY KEY",
    "k BIGINT UNSIGNED PRIMARY KEY",
    "k VARCHAR(20) PRIMARY KEY",
    "k VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin PRIMARY KEY",
    "k INT, l VARCHAR(10), PRIMARY KEY (l, k)",
    "k DECIMAL(8,2) PRIMARY KEY",
    "k VARBINARY(10) PRIMARY KEY",
    "k DATE, l SMALLINT, PRIMARY KEY (k, l)",
    "k INT NOT NULL UNIQUE",
    "k INT",
    "k INT",
)
# What a column may become, by how its type begins.
_SAME_FAMILY: Final = (
    (
        re.compile("tinyint|smallint|mediumint|int"),
        ("INT", "BIGINT", "DECIMAL(20,2)", "VARCHAR(30)"),
    ),
    (re.compile("bigint"), ("BIGINT", "DECIMAL(30,0)", "VARCHAR(40)")),
    (re.compile("decimal"), ("DECIMAL(62,10)", "DECIMAL(12,1)", "VARCHAR(80)", "DOUBLE")),
    (re.compile("float|double"), ("DOUBLE",)),
    (re.compile("varchar|char|tinytext|text"), ("VARCHAR(60)", "TEXT", "VARCHAR(4)", "LONGTEXT")),
    (re.compile("longtext"), ("LONGTEXT",)),
    (re.compile("varbinary|binary|blob"), ("VARBINARY(60)", "BLOB", "VARBINARY(2)")),
    (re.compile("enum"), ("ENUM('w','z','y','x')", "ENUM('x','y','z','w')", "VARCHAR(20)")),
    (re.compile("set"), ("SET('r','q','p','o')", "SET('p','q','r','s')", "VARCHAR(20)")),
    (re.compile("datetime"), ("DATETIME", "DATETIME(3)", "DATETIME(6)", "DATE")),
    (re.compile("timestamp"), ("TIMESTAMP NULL", "TIMESTAMP(6) NULL")),
    (re.compile("time"), ("TIME", "TIME(2)", "TIME(6)")),
    (re.compile("date"), ("DATE", "DATETIME", "VARCHAR(20)")),
    (re.compile("year"), ("YEAR", "INT", "VARCHAR(10)")),
)


class Column(NamedTuple):
    """A column as the server tells it: `type_name` is `varchar`, `column_type` is `varchar(40)`."""

    name: str
    type_name: str
    column_type: str
    charset: str | None
    is_nullable: bool
    is_computed: bool
    is_key: bool


class Said(NamedTuple):
    """A statement, and the number of the session that is to run it."""

    session: int
    text: str


Thing = TypeVar("Thing")
Ask = Callable[[str], Sequence[Sequence[object]]]
"""Rows of a query, by a session of its own."""


@dataclass(slots=True)
class _Session:
    number: int
    script: Iterator[str] = field(default_factory=lambda: iter(()))
    is_open: bool = False


class LandWorkload:
    """Makes statements.

    Args:
        chance: Where the choices come from.
        ask: The server that runs them.
        is_mariadb: Which server it is.
        rare: Chance of a statement that cannot be followed, among those that could be one.
    """

    def __init__(self, chance: random.Random, ask: Ask, *, is_mariadb: bool, rare: float) -> None:
        self._chance = chance
        self._ask = ask
        self._is_mariadb = is_mariadb
        self._rare = rare
        self._sessions = [_Session(number) for number in range(SESSIONS)]
        self._prepared: list[tuple[str, int]] = []
        self._current = self._sessions[0]
        self._serial = 0
        self._types: list[tuple[float, str]] = [
            *_TYPES,
            *(_MARIADB_TYPES if is_mariadb else _MYSQL_TYPES),
        ]

    def begin(self) -> Iterator[Said]:
        """Databases and some tables."""
        for database in DATABASES:
            yield Said(0, f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        for session in self._sessions:
            for statement in _SETUP:
                yield Said(session.number, statement)
        for table in (*POOL[:4], POOL[-1], POOL[-2]):
            yield from (Said(0, text) for text in self._create(table))
        yield from (Said(0, text) for text in self._family())

    def some(self, count: int) -> Iterator[Said]:
        """So many statements, of sessions that take turns at random."""
        for _ in range(count):
            session = self._current = self._chance.choices(self._sessions, (6, 2, 2))[0]
            statement = next(session.script, None)
            while statement is None:
                session.script = self._script(session)
                statement = next(session.script, None)
            yield Said(session.number, statement)

    def rest(self) -> Iterator[Said]:
        """Ends what is under way, but for prepared transactions."""
        for session in self._sessions:
            for statement in session.script:
                yield Said(session.number, statement)

    # Parts ----------------------------------------------------------------------------------------

    def _script(self, session: _Session) -> Iterator[str]:
        others = any(other.is_open for other in self._sessions if other is not session)
        # DDL waits for whom has written to its tables.
        makers: list[tuple[float, Callable[[_Session], Iterator[str]]]] = [
            (30, self._rows),
            (8, self._transaction),
            (2, self._xa),
            (2, self._settings),
            (0.5 if others else 14, self._ddl),
            (1.5, lambda _session: iter(("FLUSH BINARY LOGS",))),
        ]
        if self._prepared:
            makers.append((4, self._finish))
        return self._drawn(makers)(session)

    def _drawn(self, weighted: Sequence[tuple[float, Thing]]) -> Thing:
        """One of some things, by their weights."""
        return self._chance.choices(weighted, [weight for weight, _ in weighted])[0][1]

    def _is_rare(self) -> bool:
        return self._chance.random() < self._rare

    def _maybe(self, text: str, chance: float = 0.5) -> str:
        return text if self._chance.random() < chance else ""

    def _new_name(self, letter: str) -> str:
        self._serial += 1
        return f"{letter}{self._serial}"

    def _tables(self, kinds: str = "'BASE TABLE'") -> list[TableName]:
        where = f"table_schema IN ('shop', 'crm') AND table_type IN ({kinds})"
        query = f"SELECT table_schema, table_name FROM information_schema.tables WHERE {where}"
        return sorted(
            {TableName(str(schema), str(name)) for schema, name in self._ask(query)} & {*POOL}
        )

    def _table(self) -> TableName | None:
        tables = self._tables()
        holders = {session.number for session in self._sessions if session.is_open}
        holders |= {number for _, number in self._prepared}
        if holders - {self._current.number} and self._chance.random() < 0.95:
            # Who waits for a lock waits a second.
            own = self._current.number
            tables = [table for table in tables if POOL.index(table) % SESSIONS == own]
        return self._chance.choice(tables) if tables else None

    def _free(self) -> list[TableName]:
        there = set(self._tables("'BASE TABLE', 'VIEW', 'SEQUENCE', 'SYSTEM VERSIONED'"))
        free = [table for table in POOL if table not in there]
        self._chance.shuffle(free)
        return free

    def columns(self, table: TableName) -> list[Column]:
        """The columns of a table."""
        query = (
            "SELECT column_name, data_type, column_type, character_set_name, is_nullable,"
            " generation_expression, column_key FROM information_schema.columns WHERE"
            f" table_schema = '{table.database}' AND table_name = '{table.table}'"
            " ORDER BY ordinal_position"
        )
        return [
            Column(
                str(name),
                str(kind),
                str(column_type),
                None if charset is None else str(charset),
                nullable == "YES",
                bool(computed),
                key == "PRI",
            )
            for name, kind, column_type, charset, nullable, computed, key in self._ask(query)
        ]

    def _written(self, table: TableName) -> list[Column]:
        return [column for column in self.columns(table) if not column.is_computed]

    # Values ---------------------------------------------------------------------------------------

    def value(self, column: Column) -> str:
        """A literal for a column; one that does not fit, now and then."""
        chance, kind = self._chance, column.type_name
        if column.is_nullable and chance.random() < 0.15:
            return "NULL"
        if chance.random() < 0.03 and not (column.is_key and kind == "date"):
            return chance.choice(("'junk'", "-1", "99999999999", "''", "DEFAULT", "'2020-00-00'"))
        for kinds, make in self._makers:
            if kind in kinds:
                return make(column)
        return self._text(column)

    @property
    def _makers(self) -> tuple[tuple[frozenset[str], Callable[[Column], str]], ...]:
        """What makes a value of a type."""
        chance = self._chance
        return (
            (frozenset(_INTEGERS), self._integer),
            (frozenset({"decimal", "float", "double"}), lambda _: chance.choice(_NUMBERS)),
            (frozenset({"bit"}), lambda _: chance.choice(_BITS)),
            (frozenset({"enum", "set"}), self._members),
            (frozenset({"date", "datetime", "timestamp", "time", "year"}), self._moment),
            (frozenset({"json"}), self._document),
            (frozenset({"geometry", "point"}), self._point),
            (frozenset({"vector"}), self._vector),
            (frozenset({"uuid", "inet6", "inet4"}), self._address),
            (_BYTES_TYPES, lambda _: chance.choice(_BYTES)),
        )

    def _members(self, column: Column) -> str:
        members = _MEMBERS.findall(column.column_type)
        count = self._chance.randrange(len(members) + 1) if column.type_name == "set" else 1
        several = self._chance.sample(members, count)
        return self._chance.choice((f"'{','.join(several)}'", f"'{members[0]}'", "1"))

    def _document(self, _column: Column) -> str:
        return f"'{self._chance.choice(_DOCUMENTS)}'"

    def _point(self, _column: Column) -> str:
        return f"ST_GeomFromText('POINT({self._chance.randrange(9)} {self._chance.randrange(9)})')"

    def _vector(self, _column: Column) -> str:
        function = "VEC_FromText" if self._is_mariadb else "STRING_TO_VECTOR"
        return f"{function}('[{self._chance.randrange(9)}, 0.5, -1e3]')"

    def _integer(self, column: Column) -> str:
        bits, is_unsigned = _INTEGERS[column.type_name], "unsigned" in column.column_type
        edges = (0, 2 ** (bits + is_unsigned) - 1, 0 if is_unsigned else -(2**bits))
        if self._chance.random() < 0.1:
            return str(self._chance.choice(edges))
        return str(self._chance.randrange(1, 40))

    def _moment(self, column: Column) -> str:
        chance, kind = self._chance, column.type_name
        day, time = chance.choice(_DATES), chance.choice(_TIMES)
        if kind == "year":
            return chance.choice(("1999", "2155", "0", "2020"))
        if kind == "time":
            return chance.choice((f"'{time}'", "'-10:00:00.25'", "'838:59:59'"))
        if kind == "timestamp":
            day = chance.choice(_DATES[:2])
        is_zero = chance.random() < (0.01 if column.is_key else 0.1)
        zero = "'0000-00-00'" if is_zero else f"'{day}'"
        return zero if kind == "date" or chance.random() < 0.2 else f"'{day} {time}'"

    def _address(self, column: Column) -> str:
        if column.type_name == "uuid":
            return f"'123e4567-e89b-12d3-a456-4266554400{self._chance.randrange(10, 40)}'"
        return self._chance.choice(("'1.2.3.4'", "'::1'", "'255.0.0.7'"))

    def _text(self, column: Column) -> str:
        chance = self._chance
        if self._is_mariadb and column.name.startswith("j"):
            return self._document(column)
        special = _OF_CHARSETS.get(column.charset or "", _OF_CHARSETS["utf8mb4"][:4])
        word = chance.choice((*_WORDS, *special, *special))
        if chance.random() < 0.3:
            word = f"{word}{chance.randrange(30)}"
        if column.column_type in {"text", "longtext"} and chance.random() < 0.1:
            return f"REPEAT('{word}', 300)"
        return f"'{word}'"

    # Rows -----------------------------------------------------------------------------------------

    def _rows(self, session: _Session) -> Iterator[str]:
        del session
        statement = self._change()
        if statement:
            yield from statement

    def _change(self) -> Sequence[str]:
        table = self._table()
        columns = self._written(table) if table else []
        if table is None or not columns:
            return ()
        makers: tuple[tuple[int, Callable[[TableName, list[Column]], Sequence[str]]], ...] = (
            *((10, self._insert), (8, self._update), (4, self._delete), (2, self._replace)),
            *((2, self._upsert), (1, self._copy), (1, self._load), (1, self._joined)),
        )
        return self._drawn(makers)(table, columns)

    def _row(self, columns: Sequence[Column]) -> str:
        return f"({', '.join(map(self.value, columns))})"

    def _some_columns(self, columns: list[Column]) -> list[Column]:
        if self._chance.random() < 0.5:
            return columns
        return [
            column
            for column in columns
            if column.is_key or self._chance.random() < (0.6 if column.is_nullable else 0.97)
        ]

    def _insert(
        self, table: TableName, columns: list[Column], verb: str = "INSERT"
    ) -> Sequence[str]:
        chosen = self._some_columns(columns) or columns
        names = ", ".join(quote(column.name) for column in chosen)
        rows = ", ".join(self._row(chosen) for _ in range(self._chance.choice((1, 1, 2, 5, 12))))
        ignore = self._maybe("IGNORE ", 0.2) if verb == "INSERT" else ""
        return (f"{verb} {ignore}INTO {table} ({names}) VALUES {rows}",)

    def _replace(self, table: TableName, columns: list[Column]) -> Sequence[str]:
        return self._insert(table, columns, "REPLACE")

    def _upsert(self, table: TableName, columns: list[Column]) -> Sequence[str]:
        (insert,) = self._insert(table, columns)
        return (f"{insert} ON DUPLICATE KEY UPDATE {self._assignment(columns)}",)

    def _assignment(self, columns: Sequence[Column]) -> str:
        others = [column for column in columns if not column.is_key]
        # Keys change, too.
        chosen = self._chance.choice(others if others and self._chance.random() < 0.85 else columns)
        name = quote(chosen.name)
        if chosen.type_name in _INTEGERS and self._chance.random() < 0.3:
            return f"{name} = {name} + 1"
        if chosen.type_name == "json" and self._chance.random() < 0.5:
            return f"{name} = JSON_SET({name}, '$.a', {self._chance.randrange(99)})"
        return f"{name} = {self.value(chosen)}"

    def _where(self, columns: Sequence[Column]) -> str:
        chance = self._chance
        keys = [column for column in columns if column.is_key] or columns
        column = chance.choice(keys if chance.random() < 0.6 else columns)
        name = quote(column.name)
        if chance.random() < 0.1:
            return ""
        if column.type_name in _INTEGERS:
            number = chance.randrange(1, 30)
            return chance.choice(
                (f" WHERE {name} = {number}", f" WHERE {name} BETWEEN {number} AND {number + 4}")
            )
        return chance.choice(
            (f" WHERE {name} = {self.value(column)}", f" WHERE {name} IS NULL", "")
        )

    def _update(self, table: TableName, columns: list[Column]) -> Sequence[str]:
        sets = ", ".join({self._assignment(columns) for _ in range(self._chance.choice((1, 1, 2)))})
        limit = self._maybe(" LIMIT 2", 0.2)
        ignore = self._maybe("IGNORE ", 0.2)
        return (f"UPDATE {ignore}{table} SET {sets}{self._where(columns)}{limit}",)

    def _delete(self, table: TableName, columns: list[Column]) -> Sequence[str]:
        where = self._where(columns)
        limit = " LIMIT 3" if not where else self._maybe(" LIMIT 1", 0.2)
        return (f"DELETE FROM {table}{where}{limit}",)

    def _copy(self, table: TableName, columns: list[Column]) -> Sequence[str]:
        names = ", ".join(quote(column.name) for column in columns if not column.is_key)
        if not names:
            return ()
        source = self._table()
        if source != table and self._chance.random() < 0.5:
            return (f"INSERT IGNORE INTO {table} SELECT * FROM {source} LIMIT 8",)
        return (f"INSERT INTO {table} ({names}) SELECT {names} FROM {table} LIMIT 4",)

    def _load(self, table: TableName, columns: list[Column]) -> Sequence[str]:
        file = f"@FILES@/{self._new_name('load')}"
        names = ", ".join(quote(column.name) for column in columns)
        charset = "CHARACTER SET utf8mb4"
        return (
            f"SELECT {names} FROM {table} LIMIT 5 INTO OUTFILE '{file}' {charset}",
            (
                f"LOAD DATA INFILE '{file}' {self._chance.choice(('REPLACE', 'IGNORE'))}"
                f" INTO TABLE {table} {charset} ({names})"
            ),
        )

    def _joined(self, table: TableName, columns: list[Column]) -> Sequence[str]:
        """Rows of two tables in one statement."""
        other = self._table()
        theirs = self._written(other) if other else []
        if other is None or other == table or not theirs:
            return ()
        mine, hers = self._chance.choice(columns), self._chance.choice(theirs)
        on = f"x.{quote(mine.name)} = y.{quote(hers.name)}"
        sets = (
            f"x.{quote(mine.name)} = {self.value(mine)}, y.{quote(hers.name)} = {self.value(hers)}"
        )
        return (
            self._chance.choice(
                (
                    f"UPDATE {table} x JOIN {other} y ON {on} SET {sets}",
                    f"DELETE x, y FROM {table} x JOIN {other} y ON {on}",
                )
            ),
        )

    # Transactions ---------------------------------------------------------------------------------

    def _transaction(self, session: _Session) -> Iterator[str]:
        session.is_open = True
        yield "BEGIN"
        for _ in range(self._chance.randrange(1, 6)):
            yield from self._change()
            if self._chance.random() < 0.2:
                yield "SAVEPOINT s"
                yield from self._change()
                yield self._chance.choice(("ROLLBACK TO s", "RELEASE SAVEPOINT s"))
        yield self._chance.choice(("COMMIT", "COMMIT", "COMMIT", "ROLLBACK"))
        session.is_open = False

    def _xa(self, session: _Session) -> Iterator[str]:
        session.is_open = True
        name = f"'{self._new_name('x')}'{self._maybe(chr(44) + chr(39) + 'b' + chr(39), 0.3)}"
        yield f"XA START {name}"
        for _ in range(self._chance.randrange(1, 4)):
            yield from self._change()
        yield f"XA END {name}"
        how = self._chance.random()
        if how < 0.3:
            yield f"XA COMMIT {name} ONE PHASE"
        else:
            yield f"XA PREPARE {name}"
            if how < 0.7 or self._prepared:
                yield f"XA {self._chance.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} {name}"
            else:
                self._prepared.append((name, session.number))
                yield RECONNECT
                yield from _SETUP
        session.is_open = False

    def _finish(self, session: _Session) -> Iterator[str]:
        del session
        name, _ = self._prepared.pop()
        yield f"XA {self._chance.choice(('COMMIT', 'COMMIT', 'ROLLBACK'))} {name}"

    def _settings(self, session: _Session) -> Iterator[str]:
        del session
        choose = self._chance.choice
        what = choose(("mode", "mode", "zone", "names", "checks", "database", "rows", "log", "log"))
        if what == "mode":
            yield f"SET sql_mode = '{choose(_MODES)}'"
        elif what == "zone":
            yield f"SET time_zone = '{choose(('+00:00', '+05:30', '-08:00'))}'"
        elif what == "names":
            yield f"SET NAMES {choose(('utf8mb4', 'utf8mb4', 'latin1'))}"
        elif what == "database":
            yield f"USE {choose(DATABASES)}"
        elif what == "log":
            yield choose(_MARIADB_LOGS if self._is_mariadb else _MYSQL_LOGS)
        elif what == "checks":
            yield "SET foreign_key_checks = 0"
            yield from self._change()
            yield "SET foreign_key_checks = 1"
        elif self._is_rare():
            partial = ("binlog_row_value_options = PARTIAL_JSON", "''")
            setting, usual = choose(
                (
                    ("binlog_format = STATEMENT", "ROW"),
                    ("binlog_row_image = MINIMAL", "FULL"),
                    *(() if self._is_mariadb else (partial,)),
                )
            )
            yield f"SET {setting}"
            yield from self._change()
            yield f"SET {setting.split(' ')[0]} = {usual}"

    # Definitions ----------------------------------------------------------------------------------

    def _type(self) -> str:
        chosen = self._drawn(self._types)
        if chosen.startswith(("VARCHAR", "CHAR", "TEXT", "ENUM", "SET")):
            chosen += self._maybe(f" CHARACTER SET {self._chance.choice(_CHARSETS)}", 0.2)
        return chosen

    def _column(self, name: str = "") -> str:
        """A definition: a JSON column of MariaDB is told by its name, `j…`."""
        chosen = self._type()
        name = name or self._new_name("j" if chosen == "JSON" else "v")
        if "NULL" not in chosen:
            chosen += self._maybe(" NOT NULL", 0.3)
        if self._chance.random() < 0.3:
            chosen += self._default(chosen)
        if "VECTOR" not in chosen:
            chosen += self._maybe(" INVISIBLE", 0.03)
        return f"{name} {chosen}"

    def _default(self, chosen: str) -> str:
        plain = ("INT", "BIGINT", "SMALLINT", "DECIMAL", "DOUBLE", "FLOAT", "BIT")
        if chosen.startswith(plain):
            return f" DEFAULT {self._chance.randrange(2)}"
        if chosen.startswith(("VARCHAR", "CHAR")):
            return f" DEFAULT '{self._chance.choice(('', 'dflt'))}'"
        if chosen.startswith(("DATE ", "DATETIME")):
            return " DEFAULT '2020-01-01'"
        return " DEFAULT 'x'" if chosen.startswith("ENUM('x'") else ""

    def _create(self, table: TableName, *, temporary: bool = False) -> Iterator[str]:
        chance = self._chance
        parts = [chance.choice(_KEYED), *(self._column() for _ in range(chance.randrange(1, 7)))]
        if chance.random() < 0.15:
            how = chance.choice(("STORED", "STORED", "VIRTUAL"))
            parts.append(f"n INT, {self._new_name('g')} BIGINT AS (n * 2) {how}")
        if chance.random() < 0.2:
            parts.append("m VARCHAR(20), KEY (m)")
        engines = ("MyISAM", "Aria") if self._is_mariadb else ("MyISAM",)
        # MySQL's transactions, which have GTIDs, refuse to mix such tables with others.
        odds = 0.1 if self._is_mariadb else 0.03
        engine = f" ENGINE={chance.choice(engines)}" if chance.random() < odds else ""
        charset = self._maybe(f" CHARACTER SET {chance.choice(_CHARSETS)}", 0.3)
        exists = self._maybe("IF NOT EXISTS ", 0.2)
        verb = "CREATE TEMPORARY TABLE" if temporary else "CREATE TABLE"
        text = f"{verb} {exists}{table} ({', '.join(parts)}){charset}{engine}"
        if self._is_mariadb and self._is_rare() and not temporary:
            text += chance.choice((" WITH SYSTEM VERSIONING", " PAGE_CHECKSUM=1"))
        elif "k INT PRIMARY KEY" in parts and chance.random() < 0.2:
            text += " PARTITION BY HASH (k) PARTITIONS 3"
        yield text

    def _family(self) -> Iterator[str]:
        """A parent and what depends on it."""
        chance = self._chance
        free = self._free()
        if len(free) < 3:
            return
        parent, child, leaf = free[:3]
        rules = ("CASCADE", "CASCADE", "SET NULL", "RESTRICT")
        yield (
            f"CREATE TABLE {parent} (k INT PRIMARY KEY, code VARCHAR(20) UNIQUE, {self._column()})"
        )
        yield (
            f"CREATE TABLE {child} (k INT AUTO_INCREMENT PRIMARY KEY, p INT, {self._column()},"
            f" FOREIGN KEY (p) REFERENCES {parent} (k) ON DELETE {chance.choice(rules)}"
            f" ON UPDATE {chance.choice(rules)})"
        )
        key = chance.choice(("k INT PRIMARY KEY", "k INT"))
        yield (
            f"CREATE TABLE {leaf} ({key}, q INT, {self._column()}, FOREIGN KEY (q)"
            f" REFERENCES {child} (k) ON DELETE {chance.choice(rules)} ON UPDATE CASCADE)"
        )
        numbers = ", ".join(f"({number})" for number in range(1, 13))
        yield f"INSERT IGNORE INTO {parent} (k) VALUES {numbers}"
        yield f"INSERT IGNORE INTO {child} (p) VALUES {numbers}"
        yield f"INSERT IGNORE INTO {leaf} (k, q) SELECT k, k FROM {child}"

    def _ddl(self, session: _Session) -> Iterator[str]:
        del session
        there = len(self._tables())
        makers: list[tuple[float, Callable[[], Iterator[str]]]] = [
            (30, self._alter),
            (8 if there < 10 else 1, self._new),
            (2 if there < 9 else 0, self._family),
            *((5, self._rename), (3, self._swap), (2, self._copies), (3, self._shadow)),
            *((3 if there > 5 else 0, self._drop), (3, self._truncate), (3, self._program)),
            (0.5, self._drop_database),
            (1, self._make_again),
        ]
        if self._is_mariadb:
            makers += [(2, self._make_anew), (0.5, self._sequence)]
        return self._drawn(makers)()

    def _new(self) -> Iterator[str]:
        for table in self._free()[:1]:
            yield from self._create(table)

    def _make_again(self) -> Iterator[str]:
        table, other = self._table(), self._table()
        if table and other != table:
            yield f"CREATE TABLE IF NOT EXISTS {table} LIKE {other}"

    def _make_anew(self) -> Iterator[str]:
        table = self._table()
        if table:
            for text in self._create(table):
                yield text.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1)

    def _sequence(self) -> Iterator[str]:
        name = self._new_name("shop.seq")
        yield f"CREATE SEQUENCE {name}"
        yield f"SELECT NEXTVAL({name})"

    def _copies(self) -> Iterator[str]:
        other = self._table()
        for table in self._free()[:1] if other else ():
            how = self._chance.choice(
                ("LIKE {}", "AS SELECT * FROM {}", "(x INT KEY) SELECT 1 AS x")
            )
            yield f"CREATE TABLE {table} {how.format(other)}"

    def _shadow(self) -> Iterator[str]:
        """A temporary table, often with the name of another."""
        table = self._chance.choice(POOL)
        yield from self._create(table, temporary=True)
        yield from self._change()
        yield from self._change()
        yield f"DROP TEMPORARY TABLE IF EXISTS {table}"

    def _drop(self) -> Iterator[str]:
        tables = self._chance.sample(self._tables(), self._chance.choice((1, 1, 2)))
        yield f"DROP TABLE {self._maybe('IF EXISTS ')}{', '.join(map(str, tables))}"

    def _drop_database(self) -> Iterator[str]:
        yield "DROP DATABASE crm"
        yield "CREATE DATABASE crm CHARACTER SET latin1"

    def _truncate(self) -> Iterator[str]:
        table = self._table()
        if table:
            yield f"TRUNCATE TABLE {table}"

    def _rename(self) -> Iterator[str]:
        old, free = self._table(), self._free()
        if old is None or not free:
            return
        yield self._chance.choice(
            (
                f"RENAME TABLE {old} TO {free[0]}",
                f"ALTER TABLE {old} RENAME TO {free[0]}",
                f"RENAME TABLE {old} TO {free[0]}, {free[0]} TO {free[-1]}",
            )
        )

    def _swap(self) -> Iterator[str]:
        tables, free = self._tables(), self._free()
        if len(tables) < 3 or not free:
            return
        ring = self._chance.sample(tables, self._chance.choice((2, 2, 3)))
        pairs = [(ring[0], free[0]), *zip(ring[1:], ring, strict=False), (free[0], ring[-1])]
        yield "RENAME TABLE " + ", ".join(f"{old} TO {new}" for old, new in pairs)

    def _program(self) -> Iterator[str]:
        """Views and triggers; what triggers write are rows like others."""
        table, other = self._table(), self._table()
        if table is None or other is None:
            return
        columns = self._written(other)
        name = self._new_name("t")
        yield f"CREATE OR REPLACE VIEW {table.database}.view_{name} AS SELECT * FROM {table}"
        if columns and other != table:
            insert = self._insert(other, columns)[0].replace("INSERT INTO", "INSERT IGNORE INTO")
            event = self._chance.choice(("BEFORE UPDATE", "AFTER INSERT", "AFTER DELETE"))
            trigger = f"{quote(table.database)}.{name}"
            yield f"CREATE TRIGGER {trigger} {event} ON {table} FOR EACH ROW {insert}"
            for _ in range(3):
                yield from self._change()
            yield f"DROP TRIGGER IF EXISTS {trigger}"

    def _alter(self) -> Iterator[str]:
        table = self._table()
        columns = self.columns(table) if table else []
        if table is None or not columns:
            return
        actions = [self._action(columns) for _ in range(self._chance.choice((1, 1, 1, 2, 3)))]
        words = self._maybe("IGNORE ", 0.05) if self._is_mariadb else ""
        yield f"ALTER {words}TABLE {table} {', '.join(actions)}"

    def _action(self, columns: list[Column]) -> str:
        choose = self._chance.choice
        column = choose([each for each in columns if not each.is_key] or columns)
        name, new = quote(column.name), self._new_name("w")
        place = choose(("", "", " FIRST", f" AFTER {quote(choose(columns).name)}"))
        typed = self._other_type(column) + self._maybe(" NOT NULL", 0.15)
        kinds: list[tuple[int, str]] = [
            (8, f"ADD COLUMN {self._column()}{place}"),
            (4, f"DROP COLUMN {name}"),
            (3, f"RENAME COLUMN {name} TO {new}"),
            (3, f"CHANGE {name} {new} {typed}"),
            (5, f"MODIFY {name} {typed}{place}"),
            (3, f"CONVERT TO CHARACTER SET {choose(('utf8mb4', 'utf8mb4', *_CHARSETS))}"),
            (2, f"ORDER BY {name}"),
            (1, f"ADD INDEX {new} ({name})"),
            (1, f"ADD UNIQUE {new} ({name})"),
            (1, "DROP PRIMARY KEY"),
            (1, f"ADD PRIMARY KEY ({name})"),
            (1, f"COMMENT = '{new}'"),
            (1, f"ALTER COLUMN {name} SET DEFAULT '7'"),
            (1, f"AUTO_INCREMENT = {self._chance.randrange(1, 99)}"),
            (1, "FORCE"),
            (1, f"ENGINE = {choose(('InnoDB', 'InnoDB', 'MyISAM'))}"),
            (1, f"DEFAULT CHARACTER SET {choose(_CHARSETS)}"),
        ]
        if self._is_rare():
            kinds = [
                (1, f"ADD COLUMN {new} DATETIME DEFAULT CURRENT_TIMESTAMP"),
                (1, f"ADD COLUMN {new} INT AS (LENGTH({name})) STORED"),
                (1, f"MODIFY {name} {self._type()}"),
                (1, "TRUNCATE PARTITION p0"),
            ]
        return self._drawn(kinds)

    def _other_type(self, column: Column) -> str:
        for pattern, types in _SAME_FAMILY:
            if pattern.match(column.type_name):
                return self._chance.choice(list(types))
        return column.column_type

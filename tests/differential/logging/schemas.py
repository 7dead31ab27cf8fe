"""Sessions on the tables of installed applications: their columns are what statements are drawn for.

The scripts are those of `tests/differential/applications`; of them the tables are taken that a server
makes in an empty database, each with its columns and their types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import pymysql
import pytest

from binlane.statements.sql import parser
from binlane.statements.sql.script import decoded, statements
from binlane.statements.sql.servers import Dialect
from binlane.statements.sql.tree.definitions import CreateTable, DefinedColumn, KeyDefinition
from tests.differential.applications.scripts import Application, applications
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.scripts import Script, Statement

_TABLES: Final = 3
_LENGTH: Final = 16
_TEXT_MAX: Final = 20_000
"""Characters of a table's text; longer ones are not taken."""
_NUMBERS: Final = frozenset(
    (
        *("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "DECIMAL", "DEC"),
        *("NUMERIC", "FIXED", "FLOAT", "DOUBLE", "REAL", "BOOL", "BOOLEAN", "BIT", "SERIAL"),
    )
)
_SMALL: Final = {"TINYINT": 100, "BOOL": 2, "BOOLEAN": 2, "BIT": 2, "SMALLINT": 30_000}
_VALUES: Final = {
    "DATE": "'2020-01-{day:02}'",
    "DATETIME": "'2020-01-{day:02} 10:00:00'",
    "TIMESTAMP": "'2020-01-{day:02} 10:00:00'",
    "TIME": "'10:00:{day:02}'",
    "YEAR": "20{day:02}",
    "JSON": "'{{\"k\": {day}}}'",
    "INET6": "'::{day}'",
    "UUID": "'00000000-0000-0000-0000-0000000000{day:02}'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AppTable:
    """A table of an application.

    Attributes:
        name: As its statement names it.
        sql: Its statement.
        columns: All columns.
        keys: Names of its keys.
        parents: Tables that its foreign keys name.
    """

    name: str
    sql: str
    columns: tuple[DefinedColumn, ...]
    keys: tuple[str, ...]
    parents: frozenset[str]

    @property
    def written(self) -> tuple[DefinedColumn, ...]:
        """Columns that take values."""
        return tuple(each for each in self.columns if each.generated is None and not each.storage)

    @property
    def plain(self) -> tuple[DefinedColumn, ...]:
        """Columns that an UPDATE may set: no keys of one column."""
        return tuple(each for each in self.written if not each.key and not each.is_auto_increment)


def tables_of(application: Application, recorder: Recorder, dialect: Dialect) -> list[AppTable]:
    """The tables of an application that a server makes; none where its package cannot be had."""
    try:
        texts = [decoded(data) for _, data in application.scripts()]
    except pytest.skip.Exception:
        return []
    found: dict[str, AppTable] = {}
    for text in texts:
        for sql in statements(text, lambda: dialect):
            table = _table(sql, dialect)
            if table is not None:
                found.setdefault(table.name.lower(), table)
    return _made(list(found.values()), recorder)


def _table(sql: str, dialect: Dialect) -> AppTable | None:
    if not re.match(r"(?is)\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*)*create\s+table", sql):
        return None
    try:
        node = parser.parse(sql, dialect)
    except Exception:  # noqa: BLE001 - what is no SQL of this server is none of its tables
        return None
    if not isinstance(node, CreateTable) or node.name.database or node.query or node.like:
        return None
    columns = tuple(each for each in node.elements if isinstance(each, DefinedColumn))
    keys = [each for each in node.elements if isinstance(each, KeyDefinition)]
    if len(sql) > _TEXT_MAX or not columns:
        return None
    parents = {key.references.table.name.lower() for key in keys if key.references}
    return AppTable(
        name=node.name.name,
        sql=sql.strip().rstrip(";"),
        columns=columns,
        keys=tuple(key.name for key in keys if key.name and not key.references),
        parents=frozenset(parents),
    )


def _made(tables: Sequence[AppTable], recorder: Recorder) -> list[AppTable]:
    """Those that the server makes, parents first."""
    recorder.reset(("create database d",))
    made: dict[str, AppTable] = {}
    with recorder.server.connect("d") as connection:
        connection.query("set sql_log_bin=0")
        left = list(tables)
        for _ in tables:
            later = []
            for table in left:
                try:
                    connection.query(table.sql)
                except pymysql.MySQLError:
                    later.append(table)
                else:
                    made[table.name.lower()] = table
            if len(later) == len(left):
                break
            left = later
    return list(made.values())


class Applications:
    """The applications that can be had, with their tables.

    Attributes:
        tables: Of each application that has some, by its name.
    """

    def __init__(self, recorder: Recorder, dialect: Dialect, only: Sequence[str] = ()) -> None:
        self._flavor = recorder.server.flavor
        self.tables: dict[str, list[AppTable]] = {}
        for application in applications():
            if (only and application.name not in only) or not (
                application.for_mysql or self._flavor == "mariadb"
            ):
                continue
            found = tables_of(application, recorder, dialect)
            if found:
                self.tables[application.name] = found

    def script(self, seed: int) -> Script:
        """A session on some tables of one application, parents of their foreign keys among them."""
        random = Random(f"{self._flavor}-{seed}")
        names = list(self.tables)
        known = self.tables[names[seed % len(names)]]
        chosen = random.sample(known, min(_TABLES, len(known)))
        wanted = {table.name.lower() for table in chosen}
        for table in reversed(known):
            if table.name.lower() in wanted:
                wanted |= table.parents
        some = [table for table in known if table.name.lower() in wanted]
        schema = ["create database d", "use d", *(table.sql for table in some)]
        drawn = _Statements(chosen, random)
        schema += [drawn.insert(table, 1) for table in some if not table.parents]
        texts = [f"set binlog_format={random.choice(('statement', 'mixed', 'row'))}"]
        texts += [drawn.draw() for _ in range(_LENGTH)]
        return Script(
            schema=tuple(schema[: 2 + len(some)]),
            statements=tuple(Statement(sql=text) for text in (*schema[2 + len(some) :], *texts)),
        )


class _Statements:
    """Draws statements on some tables."""

    def __init__(self, tables: Sequence[AppTable], random: Random) -> None:
        self._tables, self._random, self._serial = tables, random, 10

    def draw(self) -> str:
        """One statement."""
        random = self._random
        table, other = random.choice(self._tables), random.choice(self._tables)
        self._serial += 1
        number = self._serial
        name = f"`{table.name}`"
        column = random.choice(table.plain or table.written)
        quoted = f"`{column.name}`"
        kind = random.random()
        if kind < 0.3:
            return self.insert(table, number, ignore=kind < 0.05, upsert=0.05 < kind < 0.1)
        if kind < 0.45:
            return self._change(table, column, number)
        return random.choice(
            (
                f"delete from {name} where {quoted}={value(column, number - 3)}",
                f"delete from {name} limit 1",
                f"insert into {name} select * from {name}",
                f"replace into {name} select * from {name} limit 1",
                f"delete x from {name} x join `{other.name}` y on 1=0",
                f"update {name} x, `{other.name}` y set x.{quoted}={value(column, number)}",
                f"create table z{number} like {name}",
                f"create table z{number} select * from {name}",
                f"create table z{number} select {quoted}, uuid() u from {name}",
                f"create temporary table z{number} like {name}",
                f"create temporary table z{number} select * from {name}",
                f"create or replace view v{number} as select * from {name}",
                f"create procedure p{number}() {self.insert(table, number)}",
                f"create trigger r{number} before insert on {name} for each row set @q=1",
                f"alter table {name} add column z{number} int",
                f"alter table {name} add column z{number} varchar(40) default (uuid())",
                f"alter table {name} drop column {quoted}",
                f"alter table {name} change {quoted} z{number} text",
                f"alter table {name} add index z{number} ({quoted})",
                f"alter table {name} convert to character set utf8mb4",
                f"alter table {name} engine={random.choice(('innodb', 'myisam'))}",
                f"alter table {name} comment 'z{number}', force",
                *(f"alter table {name} drop index `{key}`" for key in table.keys[:2]),
                f"rename table {name} to z{number}, z{number} to {name}",
                f"truncate table {name}",
                f"drop table {name}",
                f"drop table if exists {name}, `{other.name}`",
                f"create index z{number} on {name} ({quoted})",
                f"lock tables {name} write, `{other.name}` read",
                "unlock tables",
                "begin",
                "commit",
                "rollback",
                f"select * from {name} for update",
                f"optimize table {name}",
                f"set binlog_format={random.choice(('statement', 'mixed', 'row'))}",
            )
        )

    def _change(self, table: AppTable, column: DefinedColumn, number: int) -> str:
        name, quoted = f"`{table.name}`", f"`{column.name}`"
        return self._random.choice(
            (
                f"update {name} set {quoted}={value(column, number)}",
                f"update {name} set {quoted}={value(column, number)} limit 1",
                f"update {name} set {quoted}=default",
                f"update {name} set {quoted}=concat({quoted}, uuid())",
                f"update ignore {name} set {quoted}={value(column, 1)}",
                f"update {name} set {quoted}={quoted}",
                f"update {name} set {quoted}=@@server_id",
            )
        )

    def insert(
        self, table: AppTable, number: int, *, ignore: bool = False, upsert: bool = False
    ) -> str:
        """An INSERT of all columns, or of those that need a value."""
        columns = table.written
        if self._random.random() < 0.3:
            needed = [
                each for each in columns if each.is_nullable is False and each.default is None
            ]
            columns = tuple(needed) or columns
        columns = tuple(each for each in columns if not each.is_auto_increment) or columns
        names = ", ".join(f"`{each.name}`" for each in columns)
        values = ", ".join(value(each, number) for each in columns)
        text = (
            f"insert {'ignore ' if ignore else ''}into `{table.name}` ({names}) values ({values})"
        )
        if upsert:
            last = columns[-1].name
            text += f" on duplicate key update `{last}`=values(`{last}`)"
        return text


def value(column: DefinedColumn, number: int) -> str:
    """A value of a column's type."""
    kind = column.type
    if kind is None:
        return "default"
    name = kind.name
    if name in _NUMBERS:
        return str(number % _SMALL.get(name, 1000))
    if name in {"ENUM", "SET"}:
        member = kind.arguments[0].replace("'", "''")
        return f"'{member}'"
    if name in _VALUES:
        return _VALUES[name].format(day=number % 27 + 1)
    length = int(kind.arguments[0]) if kind.arguments and kind.arguments[0].isdigit() else 1
    if name in {"VARCHAR", "CHAR", "VARBINARY", "BINARY", "NVARCHAR", "NCHAR"}:
        return f"'{str(number)[:length]}'"
    return f"'{number}'"

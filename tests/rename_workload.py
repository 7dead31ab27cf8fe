"""Random sessions that rename, swap, copy and drop tables over two databases, with rows in between.

Unless asked for, no statement reads a table to change another one, so that each table's content hangs
on itself alone; but tables are made LIKE and AS SELECT of others. What a server refuses is passed
over.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from binlane.names import TableName

DATABASES: Final = ("shop", "crm")
NAMES: Final = ("a", "b", "c", "d", "a_b", "my.t")
POOL: Final = tuple(TableName(database, name) for database in DATABASES for name in NAMES)


@dataclass(slots=True)
class RenameWorkload:
    """Makes statements, and knows which tables there are.

    Attributes:
        chance: Where the choices come from.
        formats: The session's `binlog_format`s that it takes turns with.
        is_mariadb: Its server also knows OR REPLACE, RENAME … IF EXISTS, and ALTER in two phases.
        mixes: Statements read tables to change others, and what the log does not tell is left to it:
            whether IF NOT EXISTS found a table that it never spoke of.
        quote: What names are written with.
        there: The tables that there are.
        database: The default database.
    """

    chance: random.Random
    formats: Sequence[str]
    is_mariadb: bool = False
    mixes: bool = False
    quote: str = "`"
    there: set[TableName] = field(default_factory=set)
    database: str = "shop"

    def session(self, count: int) -> Iterator[str]:
        """So many statements of one session."""
        for database in DATABASES:
            yield f"CREATE DATABASE {database} CHARACTER SET utf8mb4"
        yield "USE shop"
        for table in POOL[::2]:
            yield from self._create(table)
        for _ in range(count):
            yield from self._some()

    def _some(self) -> Iterator[str]:
        makers = (
            *(self._rows,) * 8,
            *(self._transaction,) * 3,
            *(self._renames,) * 5,
            *(self._swap,) * 2,
            *(self._alter_rename, self._alter, self._drop, self._copy, self._new),
            *(self._use, self._format, self._make_again, self._shadow, self._shadow),
            *(self._view, self._drop_nothing, self._quotes),
            *((self._replace, self._rename_nothing, self._two_phases) if self.is_mariadb else ()),
            *((self._failed_alter,) if self.is_mariadb else ()),
            *((self._mixed, self._mixed, self._copy_perhaps) if self.mixes else ()),
        )
        yield from self.chance.choice(makers)()

    def _named(self, table: TableName) -> str:
        """A name as a session may write it."""
        quote = self.quote
        name = f"{quote}{table.table}{quote}"
        if table.database == self.database and self.chance.random() < 0.5:
            return name
        return f"{quote}{table.database}{quote}.{name}"

    def _pick(self) -> TableName | None:
        return self.chance.choice(sorted(self.there)) if self.there else None

    def _free(self) -> list[TableName]:
        free = [table for table in POOL if table not in self.there]
        self.chance.shuffle(free)
        return free

    def _use(self) -> Iterator[str]:
        self.database = self.chance.choice(DATABASES)
        yield f"USE {self.database}"

    def _format(self) -> Iterator[str]:
        yield f"SET binlog_format = {self.chance.choice(self.formats)}"

    def _create(self, table: TableName) -> Iterator[str]:
        self.there.add(table)
        yield f"CREATE TABLE {self._named(table)} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40))"

    def _new(self) -> Iterator[str]:
        for table in self._free()[:1]:
            yield from self._create(table)

    def _copy(self) -> Iterator[str]:
        other = self._pick()
        for table in self._free()[:1] if other else ():
            self.there.add(table)
            how = self.chance.choice(("LIKE {}", "AS SELECT * FROM {}"))
            yield f"CREATE TABLE {self._named(table)} {how.format(self._named(other))}"  # type: ignore[arg-type]

    def _make_again(self) -> Iterator[str]:
        """A table that is there is not made, whatever of."""
        table, other = self._pick(), self._pick()
        if table and other and table != other:
            how = self.chance.choice(("LIKE {}", "(z INT)"))
            yield f"CREATE TABLE IF NOT EXISTS {self._named(table)} {how.format(self._named(other))}"

    def _shadow(self) -> Iterator[str]:
        """A temporary table for a while, often with the name of another one."""
        table, other = self.chance.choice(POOL), self._pick()
        name = self._named(table)
        how = self.chance.choice(("LIKE {}", "(id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40))"))
        if other is None or other == table:
            return
        yield f"CREATE TEMPORARY TABLE {name} {how.format(self._named(other))}"
        for _ in range(self.chance.randrange(3)):
            yield f"INSERT INTO {name} (v) VALUES ('temporary')"
            change = self._change()
            # What changes a table of this name changes the temporary one now.
            if change and self.chance.random() < 0.5:
                yield change
        yield f"DROP TEMPORARY TABLE {name}"

    def _view(self) -> Iterator[str]:
        """A view for a while; it may be renamed."""
        other, free = self._pick(), self._free()
        if other is None or len(free) < 2:
            return
        name = free[0]
        again = self.chance.choice(("", "OR REPLACE "))
        for each in (other, self._pick() or other):
            yield f"CREATE {again}VIEW {self._named(name)} AS SELECT * FROM {self._named(each)}"
        if free[1].database == name.database and self.chance.random() < 0.5:
            yield f"RENAME TABLE {self._named(name)} TO {self._named(free[1])}"
            name = free[1]
        change = self._change()
        if change:
            yield change
        yield f"DROP VIEW IF EXISTS {self._named(name)}"

    def _drop_nothing(self) -> Iterator[str]:
        for table in self._free()[:1]:
            yield f"DROP TABLE IF EXISTS {self._named(table)}"

    def _quotes(self) -> Iterator[str]:
        self.quote, mode = self.chance.choice(
            [("`", ""), ('"', "ANSI_QUOTES,"), *([('"', "ORACLE,")] if self.is_mariadb else [])]
        )
        yield f"SET sql_mode = '{mode}STRICT_TRANS_TABLES'"

    def _failed_alter(self) -> Iterator[str]:
        """One that fails behind its beginning, on rows that are alike."""
        table, free = self._pick(), self._free()
        if table and free:
            name = self._named(table)
            yield f"REPLACE INTO {name} (id, v) VALUES (901, 'same'), (902, 'same')"
            yield f"ALTER TABLE {name} RENAME TO {self._named(free[0])}, ADD UNIQUE (v)"

    def _mixed(self) -> Iterator[str]:
        table, other = self._pick(), self._pick()
        if table and other and table != other:
            to, of = self._named(table), self._named(other)
            yield self.chance.choice(
                (
                    f"INSERT IGNORE INTO {to} (id, v) SELECT id + 50, v FROM {of} WHERE id < 5",
                    f"UPDATE {to} AS x JOIN {of} AS y ON x.id = y.id SET x.v = y.v",
                    f"DELETE x FROM {to} AS x JOIN {of} AS y ON x.id = y.id WHERE x.id > 7",
                )
            )

    def _copy_perhaps(self) -> Iterator[str]:
        other, free = self._pick(), self._free()
        if other and free:
            self.there.add(free[0])
            how = self.chance.choice(("LIKE {}", "AS SELECT * FROM {}"))
            made = how.format(self._named(other))
            yield f"CREATE TABLE IF NOT EXISTS {self._named(free[0])} {made}"

    def _replace(self) -> Iterator[str]:
        table, other = self._pick(), self._pick()
        how = "(id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40))"
        if table and other and table != other and self.chance.random() < 0.5:
            how = f"LIKE {self._named(other)}"
        if table:
            yield f"CREATE OR REPLACE TABLE {self._named(table)} {how}"

    def _rename_nothing(self) -> Iterator[str]:
        table, free = self._pick(), self._free()
        if table and free:
            yield f"RENAME TABLE IF EXISTS {self._named(free[0])} TO {self._named(table)}"

    def _two_phases(self) -> Iterator[str]:
        yield f"SET binlog_alter_two_phase = {self.chance.randrange(2)}"

    def _drop(self) -> Iterator[str]:
        count = min(len(self.there), self.chance.choice((1, 1, 2, 3)))
        gone = self.chance.sample(sorted(self.there), count)
        if gone:
            self.there.difference_update(gone)
            exists = self.chance.choice(("", "IF EXISTS "))
            yield f"DROP TABLE {exists}{', '.join(map(self._named, gone))}"

    def _change(self) -> str | None:
        table = self._pick()
        if table is None:
            return None
        name, value = self._named(table), f"v{self.chance.randrange(1000)}"
        number = self.chance.randrange(1, 12)
        return self.chance.choice(
            (
                f"INSERT INTO {name} (v) VALUES ('{value}'), ('x')",
                f"INSERT INTO {name} (v) VALUES (@last), ('{value}')",
                f"UPDATE {name} SET v = '{value}' WHERE id <= {number}",
                f"DELETE FROM {name} WHERE id = {number}",
                f"REPLACE INTO {name} (id, v) VALUES ({number}, '{value}')",
            )
        )

    def _rows(self) -> Iterator[str]:
        yield f"SET @last = 'u{self.chance.randrange(100)}'"
        change = self._change()
        if change:
            yield change

    def _transaction(self) -> Iterator[str]:
        changes = [self._change() for _ in range(self.chance.randrange(1, 5))]
        yield "START TRANSACTION"  # BEGIN is of a block in ORACLE mode
        yield from (change for change in changes if change)
        yield self.chance.choice(("COMMIT", "COMMIT", "ROLLBACK"))

    def _renames(self) -> Iterator[str]:
        """One or several renames, also across databases, and some in a chain."""
        pairs, free = [], self._free()
        for _ in range(self.chance.choice((1, 1, 2, 3))):
            old = self._pick()
            if old is None or not free:
                break
            new = free.pop()
            pairs.append((old, new))
            self.there.remove(old)
            self.there.add(new)
            free.insert(0, old)
        if pairs:
            yield self._rename(pairs)

    def _swap(self) -> Iterator[str]:
        free = self._free()
        if len(self.there) < 2 or not free:
            return
        count = min(len(self.there), self.chance.choice((2, 2, 3)))
        ring, spare = self.chance.sample(sorted(self.there), count), free[0]
        pairs = [(ring[0], spare), *zip(ring[1:], ring, strict=False), (spare, ring[-1])]
        yield self._rename(pairs)

    def _rename(self, pairs: Sequence[tuple[TableName, TableName]]) -> str:
        listed = ", ".join(f"{self._named(old)} TO {self._named(new)}" for old, new in pairs)
        return f"RENAME TABLE {listed}"

    def _alter_rename(self) -> Iterator[str]:
        old, free = self._pick(), self._free()
        if old and free:
            self.there.remove(old)
            self.there.add(free[0])
            more = self.chance.choice(("", ", ADD INDEX (v)"))
            yield f"ALTER TABLE {self._named(old)} RENAME TO {self._named(free[0])}{more}"

    def _alter(self) -> Iterator[str]:
        table = self._pick()
        if table:
            what = self.chance.choice(("TRUNCATE TABLE {}", "ALTER TABLE {} COMMENT = 'x'"))
            yield what.format(self._named(table))

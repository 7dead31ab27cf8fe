"""Random statements on objects whose names are found again in any bytes: what is outside is told apart.

Each name stands for one object alone and is part of no other name. What a scope does not include
must then be nowhere in its binlog. Texts that only statements hold (`w-<table>`) stand where they
are about that table.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from binlane.names import TableName
from binlane.statements.scope.scope import Scope

DATABASES: Final = ("shop", "crm")
_COUNT: Final = 4
SAVEPOINTS: Final = ("qsp1q", "qsp2q")


def _pool(letter: str) -> dict[str, list[TableName]]:
    return {
        database: [
            TableName(database, f"{database[0]}{letter}{number}q") for number in range(1, _COUNT)
        ]
        for database in DATABASES
    }


TABLES: Final = _pool("tab")
VIEWS: Final = _pool("vie")
FUNCTIONS: Final = _pool("fun")
PROCEDURES: Final = _pool("pro")
TRIGGERS: Final = _pool("tri")
EVENTS: Final = _pool("eve")
SEQUENCES: Final = _pool("seq")
USERS: Final = ("u1@localhost", "u2@localhost")


def trigger_table(trigger: TableName) -> TableName:
    """The table that a trigger belongs to."""
    return TABLES[trigger.database][TRIGGERS[trigger.database].index(trigger)]


def outside_words(scope: Scope) -> list[str]:
    """All that must not stand in a binlog of a scope."""
    words = list(SAVEPOINTS)
    words += [database for database in DATABASES if not scope.touches_database(database)]
    for database in DATABASES:
        tables = [name for name in TABLES[database] if not scope.includes(name)]
        words += [name.table for name in tables]
        words += [f"w-{name.table}" for name in tables]
        words += [name.table for name in SEQUENCES[database] if not scope.includes(name)]
        words += [
            name.table for name in TRIGGERS[database] if not scope.includes(trigger_table(name))
        ]
        if not scope.includes_database(database):
            for pool in (VIEWS, FUNCTIONS, PROCEDURES, EVENTS):
                words += [name.table for name in pool[database]]
    return words


@dataclass(slots=True)
class Workload:
    """Makes statements.

    Attributes:
        chance: Where the choices come from.
        edges: Whether tables may move between databases, which most scopes cannot express.
        statements: Whether sessions may log statements.
        is_mysql: Whether the source is MySQL.
    """

    chance: random.Random
    edges: bool = False
    statements: bool = False
    is_mysql: bool = False
    database: str = "shop"

    def session(self, count: int) -> Iterator[str]:
        """So many statements of one session, some of which may fail."""
        for database in DATABASES:
            yield f"CREATE DATABASE IF NOT EXISTS {database} CHARACTER SET latin1"
        yield from ("USE shop", *(f"CREATE USER IF NOT EXISTS {user}" for user in USERS))
        for database in DATABASES:
            for table in TABLES[database]:
                yield f"CREATE TABLE {table} (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(40), c INT)"
        made = 0
        while made < count:
            for statement in self._some():
                made += 1
                yield self._with_comment(statement)

    def _some(self) -> Sequence[str]:
        kinds: list[tuple[int, Callable[[], Sequence[str]]]] = [
            (12, self._table),
            (10, self._view),
            (10, self._routine),
            (8, self._trigger),
            (7, self._event),
            (0 if self.is_mysql else 4, self._sequence),
            (2, self._database),
            (5, self._account),
            (14, self._rows),
            (4, self._transaction),
            (6, self._use),
        ]
        weights, makers = zip(*kinds, strict=True)
        maker: Callable[[], Sequence[str]] = self.chance.choices(makers, weights)[0]
        return maker()

    # Parts ----------------------------------------------------------------------------------------

    def _one(self, pool: dict[str, list[TableName]], database: str | None = None) -> TableName:
        return self.chance.choice(pool[database or self._place()])

    def _place(self) -> str:
        return self.chance.choice(("shop", "shop", "crm"))

    def _maybe(self, text: str, chance: float = 0.5) -> str:
        return text if self.chance.random() < chance else ""

    def _named(self, name: TableName) -> str:
        """A name as a session may write it."""
        if name.database == self.database and self.chance.random() < 0.6:
            return self.chance.choice((name.table, f"`{name.table}`"))
        return self.chance.choice((name.plain, str(name)))

    def _anything(self) -> str:
        """The name of some object, for people."""
        pool = self.chance.choice((TABLES, VIEWS, FUNCTIONS, PROCEDURES, EVENTS))
        name = self._one(pool)
        return self.chance.choice((name.plain, name.table, f"see {name.table}", f"`{name.table}`"))

    def _with_comment(self, statement: str) -> str:
        if self.chance.random() < 0.75 or " " not in statement:
            return statement
        comment = self.chance.choice(
            ("/* {} */", "-- {}\n", "# {}\n", "/*+ {} */", "/* it's {} */", '/* "{} */')
        ).format(self._anything())
        place = statement.index(" ")
        if self.chance.random() < 0.3:
            return f"{comment} {statement}"
        return f"{statement[:place]} {comment}{statement[place:]}"

    def _use(self) -> Sequence[str]:
        return (f"USE {self.chance.choice(DATABASES)}",)

    # Tables ---------------------------------------------------------------------------------------

    def _definition(self, table: TableName) -> str:
        choose = self.chance.choice
        other = self._one(TABLES, table.database)
        columns = choose(
            (
                "",
                f", KEY k (c) COMMENT '{self._anything()}'",
                ", CHECK (c > 0 OR c IS NULL)",
                f", CHECK ({table.table}.c <> 7)",
                ", d INT AS (a + c) VIRTUAL",
                f", FOREIGN KEY (c) REFERENCES {self._named(other)} (a)",
                ", comment VARCHAR(9), CHECK (comment = 'x')",
            )
        )
        options = choose(
            (
                "",
                f" COMMENT='{self._anything()}'",
                f" ENGINE=InnoDB, COMMENT '{self._anything()}'",
                " PARTITION BY HASH (a) PARTITIONS 2",
                (
                    " PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10) COMMENT = "
                    f"'{self._anything()}', PARTITION p1 VALUES LESS THAN MAXVALUE)"
                ),
            )
        )
        remark = self._maybe(f" COMMENT '{self._anything()}'")
        return (
            f"(a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(40) DEFAULT 'x'{remark}, c INT{columns})"
            f"{options}"
        )

    def _table(self) -> Sequence[str]:
        table = self._one(TABLES)
        other = self._one(TABLES, None if self.edges else table.database)
        name, beside = self._named(table), self._named(other)
        replace = "" if self.is_mysql else self._maybe("OR REPLACE ", 0.3)
        texts = [
            f"CREATE {replace}TABLE {name} {self._definition(table)}",
            f"CREATE TABLE IF NOT EXISTS {name} {self._definition(table)}",
            f"CREATE TABLE IF NOT EXISTS {name} {self._definition(table)}",
            (
                f"ALTER TABLE {name} COMMENT='{self._anything()}', ADD COLUMN e INT COMMENT "
                f"'{self._anything()}'"
            ),
            f"ALTER TABLE {name} DROP COLUMN e",
            f"ALTER TABLE {name} ADD INDEX i (c) COMMENT '{self._anything()}'",
            f"ALTER TABLE {name} MODIFY b VARCHAR(50) DEFAULT 'y'",
            f"DROP INDEX i ON {name}",
            f"CREATE INDEX i ON {name} (b) COMMENT '{self._anything()}'",
            f"TRUNCATE TABLE {name}",
            f"ANALYZE TABLE {name}",
            f"DROP TABLE {self._maybe('IF EXISTS ')}{name}",
            f"DROP TABLE IF EXISTS {name}, {self._named(self._one(TABLES))}",
            f"RENAME TABLE {name} TO {beside}",
            f"CREATE TABLE {name} SELECT a, b, c FROM {beside} WHERE b <> 'w-{other.table}'",
        ]
        if self.edges:
            texts += [
                f"CREATE TABLE {name} LIKE {beside}",
                f"ALTER TABLE {name} RENAME TO {beside}",
            ]
        return (self.chance.choice(texts),)

    def _query(self, database: str | None = None) -> str:
        """A query of a table or view, maybe with a function and one more table."""
        table = self._one(self.chance.choice((TABLES, TABLES, VIEWS)), database)
        call = self._maybe(f", {self._named(self._one(FUNCTIONS))}()", 0.25)
        join = self._maybe(f" JOIN {self._named(self._one(TABLES))} x USING (a)", 0.2)
        return f"SELECT {table.table}.a, {table.table}.b{call} FROM {self._named(table)}{join}" + (
            self._maybe(f" WHERE {table.table}.b <> 'w-{table.table}'")
        )

    def _view(self) -> Sequence[str]:
        view = self._one(VIEWS)
        name, other = self._named(view), self._named(self._one(VIEWS))
        same = self._named(self._one(VIEWS, view.database))
        query = self._query(self.chance.choice((view.database, None)))
        texts = [
            f"CREATE {self._maybe('OR REPLACE ')}VIEW {name} AS {query}",
            f"CREATE {self._maybe('OR REPLACE ')}VIEW {name} AS {query}",
            f"ALTER VIEW {name} AS {query}",
            f"DROP VIEW {self._maybe('IF EXISTS ')}{name}",
            f"DROP VIEW IF EXISTS {name}, {other}",
            f"RENAME TABLE {name} TO {same}",
        ]
        if not self.is_mysql:
            texts.append(f"CREATE VIEW IF NOT EXISTS {name} AS {query}")
        return (self.chance.choice(texts),)

    def _routine(self) -> Sequence[str]:
        choose = self.chance.choice
        replace = "" if self.is_mysql else self._maybe("OR REPLACE ", 0.3)
        remark = self._maybe(f"COMMENT '{self._anything()}' ")
        if choose((True, False)):
            name = self._named(self._one(FUNCTIONS))
            table = self._one(TABLES)
            result = choose(
                (
                    "RETURN 1",
                    f"RETURN (SELECT MAX(a) FROM {self._named(table)} WHERE b <> 'w-{table.table}')",
                    f"RETURN {self._named(self._one(FUNCTIONS))}() + 1",
                )
            )
            return (
                choose(
                    (
                        (
                            f"CREATE {replace}FUNCTION {name}() RETURNS INT READS SQL DATA "
                            f"{remark}{result}"
                        ),
                        f"CREATE {replace}FUNCTION {name}() RETURNS INT READS SQL DATA {result}",
                        f"ALTER FUNCTION {name} COMMENT '{self._anything()}'",
                        f"DROP FUNCTION {self._maybe('IF EXISTS ')}{name}",
                    )
                ),
            )
        name = self._named(self._one(PROCEDURES))
        table = self._one(TABLES)
        body = choose(
            (
                f"INSERT INTO {self._named(table)} (b) VALUES ('p')",
                f"BEGIN DECLARE n INT; SELECT COUNT(*) INTO n FROM {self._named(table)}; END",
                f"BEGIN PREPARE s FROM 'DELETE FROM {table} WHERE b = 1'; EXECUTE s; END",
                f"BEGIN SET @x = '{table}'; PREPARE s FROM @x; END",
                f"CALL {self._named(self._one(PROCEDURES))}()",
            )
        )
        return (
            choose(
                (
                    f"CREATE {replace}PROCEDURE {name}() {remark}{body}",
                    f"CREATE {replace}PROCEDURE {name}() {body}",
                    f"ALTER PROCEDURE {name} SQL SECURITY INVOKER COMMENT '{self._anything()}'",
                    f"DROP PROCEDURE {self._maybe('IF EXISTS ')}{name}",
                    f"CALL {name}()",
                )
            ),
        )

    def _trigger(self) -> Sequence[str]:
        trigger = self._one(TRIGGERS)
        table = trigger_table(trigger)
        other = self._one(TABLES)
        body = self.chance.choice(
            (
                "SET NEW.c = 1",
                "SET NEW.c = 2",
                f"INSERT INTO {self._named(other)} (b) VALUES ('t')",
                f"SET NEW.c = (SELECT MAX(a) FROM {self._named(other)})",
            )
        )
        replace = "" if self.is_mysql else self._maybe("OR REPLACE ", 0.3)
        order = self._maybe(f"FOLLOWS {self._one(TRIGGERS, table.database).table} ", 0.2)
        name = self._named(trigger)
        create = (
            f"CREATE {replace}TRIGGER {name} BEFORE INSERT ON {self._named(table)} "
            f"FOR EACH ROW {order}{body}"
        )
        drop = f"DROP TRIGGER {self._maybe('IF EXISTS ')}{name}"
        return (self.chance.choice((create, create, drop)),)

    def _event(self) -> Sequence[str]:
        event, table = self._one(EVENTS), self._one(TABLES)
        name = self._named(event)
        body = f"DO DELETE FROM {self._named(table)} WHERE b = 'w-{table.table}'"
        remark = self._maybe(f"COMMENT '{self._anything()}' ")
        return (
            self.chance.choice(
                (
                    f"CREATE EVENT {name} ON SCHEDULE AT '2037-01-01' {remark}{body}",
                    f"CREATE EVENT IF NOT EXISTS {name} ON SCHEDULE AT '2037-01-01' {body}",
                    f"ALTER EVENT {name} RENAME TO {self._named(self._one(EVENTS))}",
                    f"ALTER EVENT {name} COMMENT '{self._anything()}'",
                    f"ALTER EVENT {name} {body}",
                    f"ALTER EVENT {name} DISABLE",
                    f"DROP EVENT {self._maybe('IF EXISTS ')}{name}",
                )
            ),
        )

    def _sequence(self) -> Sequence[str]:
        sequence = self._one(SEQUENCES)
        name = self._named(sequence)
        return (
            self.chance.choice(
                (
                    f"CREATE SEQUENCE {self._maybe('IF NOT EXISTS ')}{name}",
                    f"CREATE OR REPLACE SEQUENCE {name} START WITH 5",
                    f"SELECT NEXTVAL({name})",
                    f"ALTER SEQUENCE {name} RESTART 7",
                    f"DROP SEQUENCE IF EXISTS {name}, {self._named(self._one(SEQUENCES))}",
                    f"DROP SEQUENCE {name}",
                )
            ),
        )

    def _database(self) -> Sequence[str]:
        database = self._place()
        drop = (
            f"DROP DATABASE {database}",
            f"CREATE DATABASE {database} CHARACTER SET latin1",
            "USE shop",
        )
        remark = "" if self.is_mysql else f" COMMENT '{self._anything()}'"
        alter = (f"ALTER DATABASE {database} CHARACTER SET utf8mb4{remark}",)
        return self.chance.choice((drop, alter, alter))

    def _account(self) -> Sequence[str]:
        user = self.chance.choice(USERS)
        on = self.chance.choice(
            (
                self._named(self._one(TABLES)),
                self._named(self._one(VIEWS)),
                f"{self._place()}.*",
                "*.*",
            )
        )
        routine = self._named(self._one(PROCEDURES))
        return (
            self.chance.choice(
                (
                    f"GRANT SELECT, INSERT ON {on} TO {user}",
                    f"GRANT SELECT (a) ON {self._named(self._one(TABLES))} TO {user}",
                    f"GRANT EXECUTE ON PROCEDURE {routine} TO {user}",
                    f"ALTER USER {user} ACCOUNT UNLOCK",
                )
            ),
        )

    # Rows -----------------------------------------------------------------------------------------

    def _change(self) -> str:
        table, other = self._one(TABLES), self._one(self.chance.choice((TABLES, VIEWS)))
        name, beside = self._named(table), self._named(other)
        words = f"b <> 'w-{table.table}'"
        call = self._maybe(f" AND {self._named(self._one(FUNCTIONS))}() = 1", 0.2)
        return self.chance.choice(
            (
                f"INSERT INTO {name} (b) VALUES ('r'), ('s')",
                (
                    f"INSERT INTO {name} (b, c) SELECT b, 1 FROM {beside} WHERE b <> 'w-{other.table}'"
                    " LIMIT 2"
                ),
                f"INSERT INTO {name} (b) SELECT b FROM {other.table} LIMIT 1",
                f"UPDATE {name} SET c = 3 WHERE {words}{call}",
                f"DELETE FROM {name} WHERE {words} LIMIT 1",
                f"UPDATE {name} x JOIN {beside} y USING (a) SET x.c = 4, y.b = 'z'",
            )
        )

    def _rows(self) -> Sequence[str]:
        if self.statements and self.chance.random() < 0.3:
            mode = self.chance.choice(("STATEMENT", "MIXED"))
            row = "SET SESSION binlog_format = ROW"
            return (f"SET SESSION binlog_format = {mode}", self._change(), row)
        return (self._change(),)

    def _transaction(self) -> Sequence[str]:
        first, second = SAVEPOINTS
        if self.chance.random() < 0.3:
            xid = f"'x{self.chance.randrange(10**9)}'"
            end = self.chance.choice((f"XA COMMIT {xid}", f"XA ROLLBACK {xid}"))
            return (
                *(f"XA START {xid}", self._change(), f"XA END {xid}", f"XA PREPARE {xid}"),
                end,
            )
        back = self._maybe(f"ROLLBACK TO SAVEPOINT {first}") or "DO 1"
        return (
            *("BEGIN", self._change(), f"SAVEPOINT {first}", self._change()),
            *(f"SAVEPOINT {second}", self._change(), back, self._change(), "COMMIT"),
        )

"""Tables of all shapes that bear on row images, and changes of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from binlane.log.codec.types import Flavor

_STATEMENTS: Final = 120
_STAMPED: Final = (
    "CREATE TABLE stamped (id INT PRIMARY KEY, a INT, b TEXT, c INT,"
    " t TIMESTAMP(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6))"
)
_TABLES: Final = (
    "CREATE TABLE pk (id INT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 4, b TEXT, c VARCHAR(300))",
    "CREATE TABLE two (id INT, a INT, b BLOB, c CHAR(10), PRIMARY KEY (c, id))",
    "CREATE TABLE word (id INT, a INT, b MEDIUMTEXT NOT NULL, c VARCHAR(20), PRIMARY KEY (b(20)))",
    "CREATE TABLE uk (id INT NOT NULL UNIQUE, a INT, b TINYTEXT, c DECIMAL(20, 5))",
    "CREATE TABLE uks (id INT NOT NULL, a INT, b TEXT, c INT, UNIQUE u (a, id), UNIQUE w (id))",
    "CREATE TABLE nulls (id INT UNIQUE, a INT, b TEXT, c DOUBLE)",
    "CREATE TABLE none (id INT, a INT, b LONGTEXT, c DATETIME(3))",
    "CREATE TABLE gen (id INT PRIMARY KEY, a INT, s INT AS (a + 1) STORED, b TEXT, c INT)",
    "CREATE TABLE seen (id INT PRIMARY KEY, a INT, v INT AS (a * 2) VIRTUAL, b TEXT, c INT)",
    "CREATE TABLE doc (id INT PRIMARY KEY, a INT, b JSON, c POINT)",
    _STAMPED,
    "CREATE TABLE bits (id BIT(20) PRIMARY KEY, a ENUM('1','2','3'), b TEXT, c SET('1','2','3'))",
)
_OF_MARIADB: Final = (
    "CREATE TABLE hash (id INT PRIMARY KEY, a INT, b TEXT UNIQUE, c INT)",
    "CREATE TABLE kept (id INT PRIMARY KEY, a INT, b TEXT, c INT) WITH SYSTEM VERSIONING",
    "CREATE TABLE packed (id UUID PRIMARY KEY, a INT, b TEXT COMPRESSED, c INET6)",
)
_C: Final = {
    "two": "'k'",
    "doc": "POINT(1, {})",
    "none": "FROM_UNIXTIME({} * 100000)",
    "packed": "CONCAT('::', {})",
    "bits": "'1'",
}


def tables(flavor: Flavor) -> tuple[str, ...]:
    """The CREATE TABLE statements."""
    return (*_TABLES, *(_OF_MARIADB if flavor is Flavor.MARIADB else ()))


def statements(flavor: Flavor) -> Iterator[str]:
    """What is done to the tables: the same each time."""
    draw = random.Random(7)
    names = [text.split()[2] for text in tables(flavor)]
    for number in range(_STATEMENTS):
        name = names[number % len(names)]
        key = "CONCAT('00000000-0000-0000-0000-0000000000', {})" if name == "packed" else "{}"
        b = "JSON_OBJECT('k', {})" if name == "doc" else "CONCAT('text ', {})"
        if number < 2 * len(names):
            first = 10 * (number // len(names)) + 10
            rows = ", ".join(
                f"({key.format(n)}, {n % 3 + 1}, {b.format(n)}, {_C.get(name, '{}').format(n % 3 + 1)})"
                for n in range(first, first + 8)
            )
            if name in ("hash", "word"):
                rows = rows.replace("'text '", "'only '")
            yield f"INSERT INTO {name} (id, a, b, c) VALUES {rows}"
            continue
        where = f"a = {draw.randint(1, 3)} ORDER BY {'b' if name == 'word' else 'id'} LIMIT 3"
        value = draw.randint(1, 3)
        sets = {
            "a": f"a = {value}",
            "b": f"b = {b.format(number)}",
            "c": f"c = {_C.get(name, '{}').format(value)}",
        }
        if name in ("hash", "word"):
            sets["b"] = "b = CONCAT(b, 'x')"
        chosen = draw.sample(sorted(sets), draw.randint(1, 3))
        if draw.random() < 0.2:
            yield f"DELETE FROM {name} WHERE {where.replace('LIMIT 3', 'LIMIT 1')}"
        else:
            yield f"UPDATE {name} SET {', '.join(sets[one] for one in chosen)} WHERE {where}"

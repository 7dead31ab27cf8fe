"""SHOW CREATE TABLE of a MariaDB, against the text that the catalog's definitions give.

The expressions are those whose types were measured before (`vectors`), here one table for all, and
combinations of them.
"""

from __future__ import annotations

import random
from pathlib import Path

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.types import Flavor
from binlane.names import TableName
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.show_create import create_table_text
from tests.servers import connect

FILE = Path(__file__).parents[1] / "vectors" / "select_types.tsv"
_, BASE, *LINES = FILE.read_text(encoding="utf-8").splitlines()
EXPRESSIONS = [
    expression
    for expression, mariadb, _ in (line.split("\t") for line in LINES)
    # Windows are read, but not in the arguments of functions.
    if mariadb != "-" and " over " not in expression
]
AGGREGATES = ("count", "sum", "avg", "max", "min", "group_concat", "std", "bit_and")
PLAIN = [each for each in EXPRESSIONS if not each.startswith(AGGREGATES)]
AROUND = (
    *("coalesce({}, {})", "if(nn = 1, {}, {})", "concat({}, {})", "nullif({}, {})"),
    *("case nn when 1 then {} else {} end", "concat_ws('-', {}, {})", "({}) = ({})"),
)
NUMBERS = ("i", "ti", "tu", "bi", "iu", "nn", "de", "nd", "1", "12", "1.25", "si", "mi", "biu")
OPERATORS = ("+", "-", "*", "/", "%")
TABLES = (
    "CREATE TABLE x SELECT * FROM base",
    "CREATE TABLE x ENGINE=MyISAM SELECT a.i AS ai, b.* FROM base a LEFT JOIN base b ON a.i = b.i",
    "CREATE TABLE x (k INT AUTO_INCREMENT PRIMARY KEY, KEY (vc)) SELECT vc, nn FROM base",
    "CREATE TABLE x (UNIQUE (nn), i BIGINT NOT NULL) CHARSET=utf8mb3 SELECT i, nn, tx FROM base",
    "CREATE TABLE x SELECT * FROM (SELECT i, count(*) AS n FROM base GROUP BY i) d",
    "CREATE TABLE x SELECT i FROM base UNION SELECT nn FROM base",
)


def numbers() -> list[str]:
    chosen = random.Random(5)
    return [
        f"{chosen.choice(NUMBERS)} {chosen.choice(OPERATORS)} {chosen.choice(NUMBERS)}"
        for _ in range(60)
    ]


def texts() -> list[str]:
    chosen = random.Random(5)
    values = ("vc", "vcn", "'abc'", "upper(vc)", "i", "nn", "left(vcn, 3)", "'x'")
    return [
        chosen.choice(AROUND).format(chosen.choice(values), chosen.choice(values))
        for _ in range(60)
    ]


def test_a_select_makes_the_table_that_the_server_makes(mariadb_server: PrivateServer) -> None:
    catalog = SchemaCatalog(Flavor.MARIADB)
    wrong = []
    statements = [
        *TABLES,
        *(f"CREATE TABLE x SELECT {each} AS e FROM base" for each in EXPRESSIONS),
        *(f"CREATE TABLE x SELECT {each} AS e FROM base" for each in (*numbers(), *texts())),
    ]
    with connect(mariadb_server, charset="utf8mb4") as connection:
        cursor = connection.cursor()
        for statement in (
            "CREATE DATABASE created CHARACTER SET latin1",
            "USE created",
            "CREATE SEQUENCE s",
            BASE.removeprefix("# "),
        ):
            cursor.execute(statement)
            catalog.apply(statement, database="created")
        assert catalog.problems == []
        for statement in statements:
            cursor.execute(statement)
            cursor.execute("SHOW CREATE TABLE x")
            (_, expected), *_ = cursor.fetchall()
            cursor.execute("DROP TABLE x")
            copy = catalog.copy()
            copy.apply(statement, database="created")
            table = copy.table(TableName("created", "x"))
            assert table is not None
            text = create_table_text(table, flavor=Flavor.MARIADB, only_given_options=False)
            if text != expected:
                wrong.append((statement, expected, text))
    assert wrong == []

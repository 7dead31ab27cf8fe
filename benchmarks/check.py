"""Statements per second of `check`, and what the analysis of one statement costs, as JSON lines.

Warm, in one process, CPU seconds: a script of usual statements whose literals differ is checked
after another one of the same kinds. `ten binlogs` carries them out alone, without splitting a
script or printing. `analysis` reads the same statements alone, first as new texts, then again; `new
shapes` are 7,000 different ones of which none is like another, the median of each. `10 MB` is one
INSERT of plain rows through `check`.

    python -m benchmarks.check [--rounds N] [--statements N]
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import statistics
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

from binlane.log.codec.types import Flavor
from binlane.statements.check.checker import Checker
from binlane.statements.check.definitions import read_definitions
from binlane.statements.check.json_lines import JsonReport
from binlane.statements.check.reasons import Judgement
from binlane.statements.check.report import Run
from binlane.statements.policy.server import Server
from binlane.statements.session.session import Session
from binlane.statements.sql.catalog import SchemaCatalog
from binlane.statements.sql.reading import read
from binlane.statements.sql.servers import Dialect

_ACCEPTED: Final = Path(__file__).parents[1] / "tests/vectors/accepted.tsv.gz"
SCHEMA = """
CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer INT, state VARCHAR(20),
                     total DECIMAL(10,2), KEY (customer)) ENGINE=InnoDB;
CREATE TABLE items (order_id INT, sku VARCHAR(40), amount INT, PRIMARY KEY (order_id, sku),
                    FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE) ENGINE=InnoDB;
CREATE TABLE audit (at DATETIME, what TEXT) ENGINE=MyISAM;
CREATE TABLE stock (sku VARCHAR(40) PRIMARY KEY, amount INT) ENGINE=InnoDB;
CREATE TRIGGER sold AFTER INSERT ON items FOR EACH ROW
  UPDATE stock SET amount = amount - NEW.amount WHERE sku = NEW.sku;
CREATE VIEW open_orders AS SELECT id, customer, total FROM orders WHERE state = 'open';
"""
BINLOGS = """
CREATE BINLOG 'orders' LOG(`shop`.`orders`, `shop`.`items`, `shop`.`stock`);
CREATE BINLOG 'all' FORMAT='MIXED';
"""
_KINDS = (
    "BEGIN",
    "INSERT INTO orders (customer, state, total) VALUES ({0}, 'open', {0}.50)",
    "INSERT INTO items VALUES (LAST_INSERT_ID(), 'sku-{0}', 2), (LAST_INSERT_ID(), 'b{0}', 1)",
    "COMMIT",
    "UPDATE orders SET state = 'paid', total = total * 1.{0} WHERE id = {0}",
    (
        "SELECT o.id, SUM(i.amount) FROM orders o JOIN items i ON i.order_id = o.id"
        " WHERE o.customer = {0} GROUP BY o.id"
    ),
    "DELETE FROM stock WHERE amount = 0 AND sku <> 'x{0}'",
    "INSERT INTO stock VALUES ('sku-{0}', 1) ON DUPLICATE KEY UPDATE amount = amount + 1",
    "UPDATE open_orders SET total = 0 WHERE customer = {0}",
    "INSERT INTO audit VALUES (NOW(), 'run {0}')",
)


def statements(number: int, begin: int) -> list[str]:
    """Usual statements, each kind as often as the others, with literals of their own."""
    return [_KINDS[n % len(_KINDS)].format(n) for n in range(begin, begin + number)]


def main() -> None:
    """Print one line a measurement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5, help="of which figures are medians")
    parser.add_argument("--statements", type=int, default=5000, help="of each script")
    given, _ = parser.parse_known_args()
    # As the command does.
    gc.set_threshold(50_000)
    begins = count(10 * given.statements, given.statements)
    for server in ("mariadb", "mysql"):
        for definitions in (None, BINLOGS):
            run = Run(Checker(Server.parse(server), SCHEMA, definitions), Judgement(), JsonReport())

            def check(texts: list[str], run: Run = run) -> None:
                for _ in run.check("script.sql", ";\n".join(texts)):
                    pass

            check(statements(given.statements, 0))
            seconds = [
                measured(check, statements(given.statements, next(begins)))
                for _ in range(given.rounds)
            ]
            told = {"server": server, "binlogs": 2 if definitions else 0}
            tell("check", given.statements, seconds, **told)
        _tell_ten_binlogs(server, given.statements, given.rounds)
    texts = [statements(given.statements, next(begins)) for _ in range(given.rounds)]
    tell("analysis, new texts", given.statements, [measured(analyse, each) for each in texts])
    tell(
        "analysis, same texts",
        len(_KINDS) * 100,
        [measured(analyse, statements(len(_KINDS), 0) * 100) for _ in range(given.rounds)],
    )
    _tell_new_shapes()
    _tell_ten_megabytes()


def _tell_ten_binlogs(server: str, number: int, rounds: int) -> None:
    objects = SchemaCatalog(Flavor(server))
    objects.load(SCHEMA)
    scopes = ("LOG(`shop`.`orders`, `shop`.`items`, `shop`.`stock`)", "LOG(`shop`)")
    lists = [scopes[n % len(scopes)] for n in range(10)]
    text = "".join(f"CREATE BINLOG 'b{n}' {one};\n" for n, one in enumerate(lists))
    definitions = read_definitions(text, name="binlogs")
    session = Session(
        server=Server.parse(server), objects=objects, definitions=definitions, database="shop"
    )

    def carry_out(texts: list[str]) -> None:
        for text in texts:
            session.execute(text)

    carry_out(statements(number, 0))
    seconds = [measured(carry_out, statements(number, 10**6 * n)) for n in range(1, rounds + 1)]
    tell("ten binlogs", number, seconds, server=server)


def _tell_new_shapes() -> None:
    lines = gzip.decompress(_ACCEPTED.read_bytes()).decode().splitlines()
    texts = [line.partition("\t")[2] for line in lines]
    seconds = sorted(measured(analyse, [text]) for text in texts)
    tell("analysis, new shapes", 1, [seconds[len(seconds) // 2]], shapes=len(texts))


def _tell_ten_megabytes() -> None:
    rows = ",\n".join(f"({n}, 'customer {n}', {n}.50)" for n in range(320_000))
    script = f"INSERT INTO shop.orders (customer, state, total) VALUES {rows};"
    run = Run(Checker(Server.parse("mariadb"), SCHEMA, None), Judgement(), JsonReport())

    def check(texts: list[str]) -> None:
        for _ in run.check("script.sql", texts[0]):
            pass

    tell("10 MB", 1, [measured(check, [script]) for _ in range(3)], bytes=len(script))


def analyse(texts: list[str]) -> None:
    """Read statements."""
    for text in texts:
        read(text, database="shop", dialect=Dialect(flavor="mysql"))


def measured(work: Callable[[list[str]], None], texts: list[str]) -> float:
    """CPU seconds that some work takes."""
    begin = time.process_time()
    work(texts)
    return time.process_time() - begin


def tell(what: str, number: int, seconds: list[float], **others: object) -> None:
    """Print a measurement."""
    median = statistics.median(seconds)
    line = {
        "benchmark": what,
        **others,
        "statements": number,
        "per_second": round(number / median),
        "microseconds_each": round(median / number * 1e6, 1),
        "spread": round((max(seconds) - min(seconds)) / median, 2),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

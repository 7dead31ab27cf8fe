"""A shop that lives: its tables, and several sessions that buy, pay, deliver and change their minds.

The data is made from a seeded generator, so that two runs do the same work; how the sessions
interleave is the server's.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pymysql
from pymysql.constants import ER

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

DATABASES: Final = ("shop", "crm")
CUSTOMERS: Final = 60
PRODUCTS: Final = 40
SECRET: Final = "crm-secret"  # noqa: S105  # a marker, no password
"""Every value of `crm` holds it, so that a search of a file for it is a proof."""

SCHEMA: Final = (
    """CREATE TABLE shop.customers (
        id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        city VARCHAR(40) NOT NULL,
        tier ENUM('basic','plus','gold') NOT NULL DEFAULT 'basic',
        tags SET('news','trade','staff') NOT NULL DEFAULT '',
        since DATE NOT NULL,
        balance DECIMAL(12,2) NOT NULL DEFAULT 0)""",
    """CREATE TABLE shop.stock (
        product INT UNSIGNED NOT NULL PRIMARY KEY,
        name VARCHAR(60) NOT NULL,
        quantity INT NOT NULL,
        weight DOUBLE NOT NULL,
        label VARBINARY(16) NOT NULL)""",
    """CREATE TABLE shop.orders (
        id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        customer INT UNSIGNED NOT NULL,
        state ENUM('new','paid','sent','gone') NOT NULL DEFAULT 'new',
        total DECIMAL(12,2) NOT NULL DEFAULT 0,
        placed DATETIME(6) NOT NULL,
        changed TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
        note TEXT,
        KEY (customer))""",
    """CREATE TABLE shop.items (
        `order` BIGINT UNSIGNED NOT NULL,
        line SMALLINT UNSIGNED NOT NULL,
        product INT UNSIGNED NOT NULL,
        quantity TINYINT UNSIGNED NOT NULL,
        price DECIMAL(10,2) NOT NULL,
        PRIMARY KEY (`order`, line))""",
    """CREATE TABLE crm.person (
        customer INT UNSIGNED NOT NULL PRIMARY KEY,
        name VARCHAR(80) NOT NULL,
        email VARCHAR(120) NOT NULL,
        born DATE,
        remarks JSON)""",
)
ADD_COLUMN: Final = (
    "ALTER TABLE shop.orders ADD COLUMN channel VARCHAR(10) DEFAULT 'web' AFTER state"
)
RENAME: Final = "RENAME TABLE shop.stock TO shop.inventory"
TABLES: Final = ("shop.customers", "shop.inventory", "shop.items", "shop.orders", "crm.person")
"""The tables after the RENAME."""

_CITIES: Final = ("Århus", "Łódź", "München", "São Paulo", "東京", "Київ")
_RETRIED: Final = frozenset(
    {ER.LOCK_DEADLOCK, ER.LOCK_WAIT_TIMEOUT, ER.NO_SUCH_TABLE, ER.TABLE_DEF_CHANGED}
)


@dataclass(slots=True)
class ShopCounts:
    """Counts of the sessions' transactions.

    Attributes:
        committed: Transactions that a session committed.
        rolled_back: Transactions that a session took back itself.
        retried: Transactions that the server took back, tried again.
    """

    committed: int = 0
    rolled_back: int = 0
    retried: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, name: str) -> None:
        """Count a transaction."""
        with self._lock:
            setattr(self, name, getattr(self, name) + 1)


class Shop:
    """Sessions on one server.

    Args:
        connect: Opens a new session as a user who may do everything in the shop.
    """

    def __init__(self, connect: Callable[[], pymysql.Connection[Any]]) -> None:
        self._connect = connect
        self._stock = "shop.stock"
        self.tally = ShopCounts()

    def open(self) -> None:
        """Create the shop's tables and fill them."""
        chance = random.Random(1)  # noqa: S311  # demo data
        with self._connect() as connection, connection.cursor() as cursor:
            for statement in SCHEMA:
                cursor.execute(statement)
            for number in range(1, CUSTOMERS + 1):
                cursor.execute(
                    "INSERT INTO shop.customers (city, tier, tags, since) VALUES (%s, %s, %s, %s)",
                    (
                        chance.choice(_CITIES),
                        chance.choice(("basic", "plus", "gold")),
                        chance.choice(("", "news", "news,trade", "staff")),
                        f"20{chance.randrange(10, 26)}-0{chance.randrange(1, 10)}-11",
                    ),
                )
                cursor.execute(
                    "INSERT INTO crm.person VALUES (%s, %s, %s, %s, %s)",
                    (
                        number,
                        f"{SECRET} name {number}",
                        f"{SECRET}.{number}@example.org",
                        f"19{chance.randrange(50, 99)}-05-17",
                        f'{{"{SECRET}": {number}}}',
                    ),
                )
            cursor.executemany(
                "INSERT INTO shop.stock VALUES (%s, %s, %s, %s, %s)",
                [
                    (n, f"thing nº {n}", 500, chance.random() * 10, chance.randbytes(8))
                    for n in range(1, PRODUCTS + 1)
                ],
            )
            connection.commit()

    def run(self, *, sessions: int, transactions: int) -> Iterator[int]:
        """Trade in several sessions at once, with the two DDL statements in mid-flight.

        Args:
            sessions: The number of sessions that run at once.
            transactions: The number of transactions that each session makes.

        Yields:
            The transactions done so far, now and then, and once at the end.

        Raises:
            pymysql.Error: The first that a session could not deal with.
        """
        failures: list[BaseException] = []
        threads = [
            threading.Thread(target=self._session, args=(seed, transactions, failures), daemon=True)
            for seed in range(sessions)
        ]
        for thread in threads:
            thread.start()
        whole = sessions * transactions
        waiting = {whole // 3: ADD_COLUMN, 2 * whole // 3: RENAME}
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(0.1)
            done = self.tally.committed + self.tally.rolled_back
            for due in [due for due in waiting if due <= done]:
                self._execute(waiting.pop(due))
            yield done
        for statement in waiting.values():
            self._execute(statement)
        if failures:
            raise failures[0]
        yield self.tally.committed + self.tally.rolled_back

    def _execute(self, statement: str) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def _session(self, seed: int, transactions: int, failures: list[BaseException]) -> None:
        chance = random.Random(seed)  # noqa: S311  # demo data
        deeds = (self._buy, self._buy, self._pay, self._deliver, self._change_person, self._regret)
        try:
            with self._connect() as connection:
                for _ in range(transactions):
                    self._do(connection, chance.choice(deeds), chance)
        except BaseException as failure:  # noqa: BLE001  # raised by `run` in the main thread
            failures.append(failure)

    def _do(
        self,
        connection: pymysql.Connection[Any],
        deed: Callable[[Cursor, random.Random], bool],
        chance: random.Random,
    ) -> None:
        """One transaction, again if the server took it back or the stock has a new name."""
        while True:
            try:
                with connection.cursor() as cursor:
                    wanted = deed(cursor, chance)
                (connection.commit if wanted else connection.rollback)()
            except pymysql.MySQLError as error:
                if error.args[0] not in _RETRIED:
                    raise
                if error.args[0] == ER.NO_SUCH_TABLE:
                    self._stock = "shop.inventory"
                connection.rollback()
                self.tally.count("retried")
            else:
                self.tally.count("committed" if wanted else "rolled_back")
                return

    def _buy(self, cursor: Cursor, chance: random.Random) -> bool:
        """An order with its items, taken from the stock: three tables at once."""
        customer = chance.randrange(1, CUSTOMERS + 1)
        note = None if chance.random() < 0.7 else f"please ring — {chance.randrange(100)} ✓"
        cursor.execute(
            "INSERT INTO shop.orders (customer, placed, note) VALUES (%s, NOW(6), %s)",
            (customer, note),
        )
        order = cursor.lastrowid
        products = sorted(chance.sample(range(1, PRODUCTS + 1), chance.randrange(1, 4)))
        lines = [
            (
                order,
                line,
                product,
                chance.randrange(1, 5),
                f"{chance.randrange(100, 9999) / 100:.2f}",
            )
            for line, product in enumerate(products, 1)
        ]
        cursor.executemany("INSERT INTO shop.items VALUES (%s, %s, %s, %s, %s)", lines)
        for _, _, product, quantity, _ in lines:
            cursor.execute(
                f"UPDATE {self._stock} SET quantity = quantity - %s WHERE product = %s",  # noqa: S608
                (quantity, product),
            )
        cursor.execute(
            "UPDATE shop.orders o SET total = "
            "(SELECT SUM(quantity * price) FROM shop.items i WHERE i.`order` = o.id) WHERE o.id = %s",
            (order,),
        )
        return True

    def _pay(self, cursor: Cursor, chance: random.Random) -> bool:
        """The customer's open orders become paid."""
        customer = chance.randrange(1, CUSTOMERS + 1)
        cursor.execute(
            "UPDATE shop.orders SET state = 'paid' WHERE customer = %s AND state = 'new'",
            (customer,),
        )
        cursor.execute(
            "UPDATE shop.customers SET balance = balance + 1.25, tier = 'plus' WHERE id = %s",
            (customer,),
        )
        return True

    def _deliver(self, cursor: Cursor, chance: random.Random) -> bool:
        """Old orders of a customer go, with their items."""
        customer = chance.randrange(1, CUSTOMERS + 1)
        cursor.execute(
            "SELECT id FROM shop.orders WHERE customer = %s AND state = 'paid' ORDER BY id LIMIT 2",
            (customer,),
        )
        for (order,) in cursor.fetchall():
            cursor.execute("DELETE FROM shop.items WHERE `order` = %s", (order,))
            cursor.execute("DELETE FROM shop.orders WHERE id = %s", (order,))
        cursor.execute(
            "UPDATE shop.customers SET city = %s WHERE id = %s", (chance.choice(_CITIES), customer)
        )
        return True

    def _change_person(self, cursor: Cursor, chance: random.Random) -> bool:
        """Personal data changes, in one transaction with the shop's."""
        customer = chance.randrange(1, CUSTOMERS + 1)
        cursor.execute(
            "UPDATE crm.person SET email = %s WHERE customer = %s",
            (f"{SECRET}.{chance.randrange(10**6)}@example.net", customer),
        )
        cursor.execute(
            "UPDATE shop.orders SET note = 'address checked' WHERE customer = %s AND state = 'new'",
            (customer,),
        )
        return True

    def _regret(self, cursor: Cursor, chance: random.Random) -> bool:
        """A purchase that is rolled back."""
        self._buy(cursor, chance)
        return False

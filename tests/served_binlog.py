"""A source with a binlog of a part of it, and clients of both that say what they are told to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.live.provision.private_server import PrivateServer
from binlane.log.codec.packets.flags import Capability
from tests.listening import ListeningPort
from tests.raw_client import CAPABILITIES, RawClient
from tests.servers import execute

FILE: Final = "orders.000001"
STATUS: Final = {"mariadb": "SHOW MASTER STATUS", "mysql": "SHOW BINARY LOG STATUS"}
DONE: Final = {"mariadb": "gtid_binlog_pos", "mysql": "gtid_executed"}
"""The variables that hold what a server has done."""


@dataclass(frozen=True)
class Served:
    """A source, and its port with the binlog `orders` of the database `shop`.

    Attributes:
        source: The source.
        port: The port.
        flavor: `mariadb` or `mysql`.
        begin: What was done before the binlog.
    """

    source: PrivateServer
    port: ListeningPort
    flavor: str
    begin: str

    def client(self, capabilities: Capability = CAPABILITIES) -> RawClient:
        """A session at the port."""
        return RawClient(self.port.port, capabilities)

    def ask(self, *statements: str) -> list[tuple[str | None, ...]]:
        """Heads and rows of the last of some statements."""
        with self.client() as client:
            return [client.rows(statement) for statement in statements][-1]

    def done(self) -> str:
        """What the source has done."""
        ((done,),) = execute(self.source, f"SELECT @@GLOBAL.{DONE[self.flavor]}")
        return str(done).replace("\n", "")

    def change(self) -> str:
        """One group in the binlog, and behind it one that is not; what is done then."""
        execute(
            self.source,
            "INSERT INTO shop.orders VALUES (NULL)",
            "INSERT INTO crm.person VALUES (1)",
        )
        return self.done()

    def end(self) -> tuple[str, int]:
        """File and position of the binlog's end, once it is complete."""
        _, row = self.ask(STATUS[self.flavor])
        return str(row[0]), int(row[1] or 0)


@contextmanager
def served_binlog(source: PrivateServer, directory: Path) -> Iterator[Served]:
    """Make the databases `shop` and `crm` on a source, and the binlog `orders` of the first.

    Args:
        source: It has neither.
        directory: For the port's data.
    """
    execute(
        source,
        "CREATE DATABASE shop",
        "CREATE DATABASE crm",
        "CREATE TABLE crm.person (id INT)",
        "INSERT INTO crm.person VALUES (0)",
    )
    with ListeningPort(source, directory / "data") as port:
        port.execute("CREATE BINLOG 'orders' LOG(shop)")
        begin = str(port.binlogs.get("orders").published.begin)
        served = Served(source, port, source.program.scheme, begin)
        execute(source, "CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT)")
        served.change()
        yield served

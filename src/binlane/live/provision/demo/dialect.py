"""The demo's statements and programs that differ between a MariaDB and a MySQL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.live.provision.private_server import MYSQL_SOURCE_OPTIONS, SOURCE_OPTIONS
from binlane.live.provision.server_programs import MARIADB, MysqlProgram, ServerProgram
from binlane.log.codec.types import Flavor
from binlane.positions import AnyGtid, parse_position

_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoServers:
    """A flavor's programs and statements.

    Attributes:
        name: The flavor's name as people write it.
        client: The flavor's command-line client, with what it needs to log in at binlane's port.
        flavor: The flavor of the server's log.
        program: The program of the source and the replica.
        source_options: The options of the source server.
        replica_options: The options of the replica server.
        privileges: The privileges that the account of binlane gets.
        done: Asks a source what it has done.
        replicated: Asks a replica what it has applied.
        status: Asks a replica how it is.
        change: Tells a replica whom to follow, with host, port, user, password and file to fill in.
        start: The statement that makes the replica follow.
    """

    name: str
    client: str
    flavor: Flavor
    program: ServerProgram
    source_options: tuple[str, ...]
    replica_options: tuple[str, ...]
    privileges: str
    done: str
    replicated: str
    status: str
    change: str
    start: str

    def accounts(self, *, admin: str, admin_password: str, user: str, password: str) -> list[str]:
        """Statements that make the accounts of binlane and of the replica."""
        return [
            f"CREATE USER {admin}@'%' IDENTIFIED BY '{admin_password}'",
            f"GRANT {self.privileges} ON *.* TO {admin}@'%'",
            f"CREATE USER {user}@'%' IDENTIFIED BY '{password}'",
            f"GRANT REPLICATION SLAVE ON *.* TO {user}@'%'",
        ]

    def follow(self, *, port: int, user: str, password: str, file: str) -> str:
        """The statement that tells a replica to follow a binlog from the beginning of a file."""
        return self.change.format(host=_HOST, port=port, user=user, password=password, file=file)

    def position(self, text: str) -> str:
        """Return a server's answer to `done`, as binlane writes it."""
        return str(parse_position(text, self.flavor.value))

    def has_applied(self, done: str, gtid: AnyGtid) -> bool:
        """True if a replica that has done so much has applied a group of its source."""
        return parse_position(done, self.flavor.value).covers(gtid)


def mariadb() -> DemoServers:
    """This machine's MariaDB."""
    return DemoServers(
        name="MariaDB",
        client="mariadb",
        flavor=Flavor.MARIADB,
        program=MARIADB,
        source_options=SOURCE_OPTIONS,
        replica_options=("--server-id=20", "--log-bin=binlog", "--log-slave-updates=ON"),
        privileges="SELECT, REPLICATION SLAVE, BINLOG ADMIN, BINLOG MONITOR",
        done="SELECT @@gtid_binlog_pos",
        replicated="SELECT @@gtid_slave_pos",
        status="SHOW SLAVE STATUS",
        change="CHANGE MASTER TO MASTER_HOST='{host}', MASTER_PORT={port}, MASTER_USER='{user}', "
        "MASTER_PASSWORD='{password}', MASTER_LOG_FILE='{file}', MASTER_LOG_POS=4, "
        "MASTER_CONNECT_RETRY=1",
        start="START SLAVE",
    )


def mysql(folder: Path | None) -> DemoServers:
    """A MySQL: of a folder that it is unpacked into, or this machine's."""
    client = "mysql" if folder is None else f"{folder}/exec /usr/bin/mysql --no-defaults"
    return DemoServers(
        name="MySQL",
        # The port has no TLS: clients take the source's RSA key for the login.
        client=f"{client} --ssl-mode=DISABLED --get-server-public-key",
        flavor=Flavor.MYSQL,
        program=MysqlProgram(folder),
        source_options=MYSQL_SOURCE_OPTIONS,
        replica_options=(*MYSQL_SOURCE_OPTIONS, "--server-id=20"),
        privileges="SELECT, REPLICATION SLAVE, REPLICATION CLIENT, BINLOG_ADMIN",
        done="SELECT @@GLOBAL.gtid_executed",
        replicated="SELECT @@GLOBAL.gtid_executed",
        status="SHOW REPLICA STATUS",
        # As the client does.
        change="CHANGE REPLICATION SOURCE TO SOURCE_HOST='{host}', SOURCE_PORT={port}, "
        "SOURCE_USER='{user}', SOURCE_PASSWORD='{password}', SOURCE_SSL=0, "
        "GET_SOURCE_PUBLIC_KEY=1, SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS=4, "
        "SOURCE_AUTO_POSITION=0, SOURCE_CONNECT_RETRY=1",
        start="START REPLICA",
    )

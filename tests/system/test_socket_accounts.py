"""A source at a Unix socket takes all clients for binlane: who must not log in there, on real servers."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pymysql
import pytest

from binlane.live.gateway.settings import TlsMode
from binlane.live.provision.private_server import SOURCE_OPTIONS
from binlane.log.codec.packets.flags import Command
from tests.listening import ListeningPort
from tests.servers import ServerFactory, execute

OURS = pwd.getpwuid(os.geteuid()).pw_name
PASSWORD = {"password": "secret"}
ANY = {"check_hostname": False}
"""TLS without a look at the certificate."""


def refused(listening: ListeningPort, user: str, **options: Any) -> None:
    """See that nobody gets in with an account."""
    with pytest.raises(pymysql.err.OperationalError, match="operating system user") as caught:
        listening.connect(user=user, **options)
    assert caught.value.args[0] == 1045


def change_user(listening: ListeningPort, user: str, **options: Any) -> Any:
    """A session of an ordinary account that becomes somebody else, without a password."""
    connection: Any = listening.connect(user="plain", **PASSWORD, **options)
    plugin = connection._auth_plugin_name.encode()
    request = user.encode() + b"\0\0\0\x2d\0" + plugin + b"\0\0"
    connection._execute_command(Command.CHANGE_USER, request)
    packet = connection._read_packet()
    if packet.is_auth_switch_request():
        connection.write_packet(b"")
        packet = connection._read_packet()
    assert packet.is_ok_packet()
    return connection


def test_mariadb(servers: ServerFactory, tmp_path: Path) -> None:
    # By its address the server does not know the client as localhost.
    source = servers.start("source", (*SOURCE_OPTIONS, "--skip-name-resolve"))
    execute(
        source,
        f"CREATE OR REPLACE USER {OURS}@localhost IDENTIFIED VIA unix_socket",
        "CREATE USER either@localhost IDENTIFIED VIA mysql_native_password"
        " USING PASSWORD('secret') OR unix_socket",
        "CREATE USER mapped@localhost IDENTIFIED VIA unix_socket AS 'somebody'",
        "CREATE USER plain@localhost IDENTIFIED BY 'secret'",
        "CREATE USER unix_socket@localhost, open@localhost",
    )
    with ListeningPort(source, tmp_path / "data", is_by_socket=True) as listening:
        refused(listening, OURS)
        refused(listening, "either", **PASSWORD)
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            listening.connect(user="mapped")
        assert listening.execute("SELECT 1", user="plain", **PASSWORD) == ((1,),)
        assert listening.execute("SELECT 1", user="unix_socket") == ((1,),)

        with change_user(listening, "open") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT CURRENT_USER()")
            assert cursor.fetchone() == ("open@localhost",)
        with pytest.raises(pymysql.err.OperationalError, match="operating system user"):
            change_user(listening, OURS)


def test_mysql(servers: ServerFactory, tmp_path: Path) -> None:
    source = servers.start_mysql("source")
    execute(
        source,
        "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'",
        f"CREATE USER mapped@localhost IDENTIFIED WITH auth_socket AS '{OURS}'",
        "CREATE USER other@localhost IDENTIFIED WITH auth_socket",
        "CREATE USER plain@localhost IDENTIFIED BY 'secret'",
        "CREATE USER auth_socket@localhost, open@localhost",
    )
    tls = {"tls": TlsMode.ON}
    with ListeningPort(source, tmp_path / "data", is_by_socket=True, gateway=tls) as listening:
        refused(listening, "mapped")
        with pytest.raises(pymysql.err.OperationalError, match="Access denied"):
            listening.connect(user="other")
        # Over TLS its client may send the password in clear, as a Unix socket wants it.
        assert listening.execute("SELECT 1", user="plain", **PASSWORD, ssl=ANY) == ((1,),)
        assert listening.execute("SELECT 1", user="auth_socket") == ((1,),)

        with change_user(listening, "open", ssl=ANY) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT CURRENT_USER()")
            assert cursor.fetchone() == ("open@localhost",)
        with pytest.raises(pymysql.err.OperationalError, match="operating system user"):
            change_user(listening, "mapped", ssl=ANY)

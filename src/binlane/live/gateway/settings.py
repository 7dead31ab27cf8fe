"""Address on which the port listens, and the source that it relays to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from binlane.client.settings import SslMode
from binlane.errors import ConfigError

_PORT_MAX: Final = 65535
_NAME: Final = re.compile(r"(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,252})|[0-9A-Fa-f:.]{2,45}")
"""Host names in the letters of DNS, and addresses."""


class TlsMode(Enum):
    """Use of TLS by clients."""

    ON = "on"
    REQUIRED = "required"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The port and the source behind it.

    Attributes:
        address: IP address or host name to listen on.
        port: TCP port to listen on; 0 takes a free one.
        source_host: Host name or IP address of the source.
        source_port: TCP port on which the source listens.
        source_socket: Path of the source's Unix socket; in place of TCP where it is given.
        source_ssl_mode: Conditions for TLS to the source, with the parts of it that are verified; with
            PREFERRED, TLS is used if the client uses it.
        source_ssl_ca: Path of the certificates that sign the source's; the system's by default.
        source_proxy_protocol: True if the source is told the address of each client.
        tls: Use of TLS by clients: allowed, required or off.
        tls_cert: Certificate of the port, PEM; one is made where none is given.
        tls_key: Private key of the certificate, PEM.
        tls_names: Further names that clients know the port by, for the certificate that is made.
        max_connections: Clients that may be logged in at a time, replicas included; the next gets
            the servers' error 1040.
        logins_max: Clients that may be logging in at a time; each takes a connection of the source.
        login_timeout_s: Longest time of a client's login, waiting for others included.
        connect_timeout_s: Longest wait for a connection to the source.
        drain_timeout_s: Longest time for statements under way when the port closes.
    """

    address: str = "127.0.0.1"
    port: int = 3307
    source_host: str = "127.0.0.1"
    source_port: int = 3306
    source_socket: str | None = None
    source_ssl_mode: SslMode = SslMode.PREFERRED
    source_ssl_ca: str | None = None
    source_proxy_protocol: bool = False
    tls: TlsMode = TlsMode.ON
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_names: tuple[str, ...] = ()
    max_connections: int = 100
    logins_max: int = 32
    login_timeout_s: float = 10.0
    connect_timeout_s: float = 10.0
    drain_timeout_s: float = 5.0

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ConfigError: If a value cannot be used.
        """
        for key, port, first in (
            ("listen.port", self.port, 0),
            ("source.url", self.source_port, 1),
        ):
            if not first <= port <= _PORT_MAX:
                raise ConfigError(
                    f"{port} is no TCP port", key=key, hint=f"use {first} to {_PORT_MAX}"
                )
        for key, count in (
            ("listen.max_connections", self.max_connections),
            ("logins_max", self.logins_max),
        ):
            if count < 1:
                raise ConfigError(f"{count} lets nobody in", key=key, hint="use 1 or more")
        for key, seconds in (
            ("listen.connect_timeout", self.login_timeout_s),
            ("connect_timeout_s", self.connect_timeout_s),
            ("drain_timeout_s", self.drain_timeout_s),
        ):
            if seconds <= 0:
                raise ConfigError(f"{seconds} s is no time to wait", key=key)
        for name in self.tls_names:
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{name!r} is no host name or address",
                    key="listen.tls_names",
                    hint="as clients write it, such as db.example.com, *.example.com or 10.1.2.3",
                )
        if (self.tls_cert is None) is not (self.tls_key is None):
            lacking = "tls_key" if self.tls_key is None else "tls_cert"
            raise ConfigError(
                "a certificate needs its key, and a key its certificate",
                key=f"listen.{lacking}",
                hint="give both tls_cert and tls_key, or neither: binlane then makes its own",
            )

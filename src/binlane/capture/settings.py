"""Which server is captured, how to log in, and from where on.

A server's address is a URL, `mariadb://user@host:port`, with the clients' options as its query:
`?socket=PATH`, `?ssl-mode=VERIFY_IDENTITY&ssl-ca=PATH`. Passwords never stand in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Final, Self
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from binlane.errors import ConfigError
from binlane.positions import SERVER_ID_MAX, FilePosition, GtidPosition

_SCHEMES: Final = ("mariadb", "mysql")
_OPTIONS: Final = ("socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key")
_DEFAULT_HOST: Final = "127.0.0.1"
_DEFAULT_PORT: Final = 3306
_FIRST_POSITION: Final = 4
_HEARTBEAT_PERIOD_MIN_S: Final = 0.001
_HEARTBEAT_PERIOD_MAX_S: Final = 4294967.0
_URL_HINT: Final = "write mariadb://USER@HOST:PORT or mariadb://USER@localhost?socket=PATH"


class SslMode(Enum):
    """The clients' `--ssl-mode`."""

    DISABLED = "DISABLED"
    PREFERRED = "PREFERRED"
    REQUIRED = "REQUIRED"
    VERIFY_CA = "VERIFY_CA"
    VERIFY_IDENTITY = "VERIFY_IDENTITY"

    @property
    def is_required(self) -> bool:
        """Whether a server without TLS is refused."""
        return self not in (SslMode.DISABLED, SslMode.PREFERRED)


class StartAt(Enum):
    """Where a first capture begins when no position is known."""

    NOW = "now"
    OLDEST = "oldest"


Start = StartAt | GtidPosition | FilePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceUrl:
    """The address of a server and the account to use there.

    Attributes:
        user: Account name.
        host: Name or address.
        port: TCP port.
        socket: Path of a Unix socket to use in place of TCP; None for TCP.
        ssl_mode: When to use TLS, and what to verify; a Unix socket needs none.
        ssl_ca: Path of the certificates that sign the server's; the system's by default.
        ssl_cert: Path of the client's own certificate.
        ssl_key: Path of its key.
        scheme: `mariadb` or `mysql`, as typed; the server itself says what it is.
    """

    user: str
    host: str = _DEFAULT_HOST
    port: int = _DEFAULT_PORT
    socket: str | None = None
    ssl_mode: SslMode = SslMode.PREFERRED
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    scheme: str = "mariadb"

    @classmethod
    def parse(cls, text: str, *, key: str = "source.url") -> Self:
        """Read a URL.

        Args:
            text: As typed.
            key: The setting that it stands in, for the error.

        Raises:
            ConfigError: If it is no such URL, names no user or holds a password.
        """
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"{text!r} is no URL: {error}", key=key, hint=_URL_HINT) from None
        _check_parts(parts, text, key)
        options = _options(parts.query, key)
        return cls(
            user=unquote(parts.username or ""),
            host=parts.hostname or _DEFAULT_HOST,
            port=_DEFAULT_PORT if port is None else port,
            socket=options.get("socket"),
            ssl_mode=_ssl_mode(options.get("ssl-mode"), key),
            ssl_ca=options.get("ssl-ca"),
            ssl_cert=options.get("ssl-cert"),
            ssl_key=options.get("ssl-key"),
            scheme=parts.scheme,
        )

    @property
    def text(self) -> str:
        """The whole URL; `parse` of it gives the same."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        given = {
            "socket": self.socket,
            "ssl-mode": None if self.ssl_mode is SslMode.PREFERRED else self.ssl_mode.value,
            "ssl-ca": self.ssl_ca,
            "ssl-cert": self.ssl_cert,
            "ssl-key": self.ssl_key,
        }
        options = urlencode({name: value for name, value in given.items() if value is not None})
        address = f"{self.scheme}://{quote(self.user)}@{host}:{self.port}"
        return f"{address}?{options}" if options else address

    def __str__(self) -> str:
        """The address as messages name it: without TLS options."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = f"{host}:{self.port}" if self.socket is None else f"{host}?socket={self.socket}"
        return f"{self.scheme}://{quote(self.user)}@{place}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The section `[source]` of the configuration.

    Attributes:
        url: The server and the account, which needs the privilege REPLICATION SLAVE.
        password_file: A file whose first line is the password; None for an empty one.
        password: The password where the caller has it already; not shown.
        start: Where a first capture begins; later ones go on where the store ends.
        server_id: Under which id binlane appears to the source, 1 to 2^32-1, unlike that of any
            other server or replica; a random one of a range of its own by default.
        heartbeat_period_s: An idle source says that it lives this often, 0.001 to 4294967 seconds.
        timeout_s: Longest wait for a connection, or for an answer before events flow.
    """

    url: SourceUrl
    password_file: Path | None = None
    password: str = field(default="", repr=False)
    start: Start = StartAt.NOW
    server_id: int | None = None
    heartbeat_period_s: float = 5.0
    timeout_s: float = 10.0

    def __post_init__(self) -> None:
        if self.password and self.password_file is not None:
            raise ConfigError("a password and a file with it are given", key="source.password_file")
        if self.server_id is not None and not 1 <= self.server_id <= SERVER_ID_MAX:
            raise ConfigError(
                f"{self.server_id} is no server id: 1 to {SERVER_ID_MAX} are",
                key="source.server_id",
            )
        if not _HEARTBEAT_PERIOD_MIN_S <= self.heartbeat_period_s <= _HEARTBEAT_PERIOD_MAX_S:
            raise ConfigError(
                f"{self.heartbeat_period_s} s cannot be a heartbeat period: "
                f"{_HEARTBEAT_PERIOD_MIN_S} to {_HEARTBEAT_PERIOD_MAX_S:.0f} s can",
                key="source.heartbeat_period_s",
            )
        if not self.timeout_s > 0:
            raise ConfigError(f"{self.timeout_s} s is no timeout", key="source.timeout_s")


def parse_start(text: str, *, key: str = "source.start") -> Start:
    """Read `now`, `oldest`, a GTID position or `file:position`.

    Raises:
        ConfigError: If it is none of these.
    """
    words = {start.value: start for start in StartAt}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    file, colon, position = text.strip().rpartition(":")
    if colon and file and position.isascii() and position.isdigit():
        return FilePosition(file, max(int(position), _FIRST_POSITION))
    try:
        gtid_position = GtidPosition.parse(text)
    except ValueError as error:
        raise ConfigError(str(error), key=key, hint=_start_hint()) from None
    if not gtid_position:
        raise ConfigError("no start is named", key=key, hint=_start_hint())
    return gtid_position


def _start_hint() -> str:
    return 'write "now", "oldest", a GTID position such as "0-1-27", or "file:position"'


def _check_parts(parts: SplitResult, text: str, key: str) -> None:
    if parts.password is not None:
        # The text is not repeated: messages end in logs.
        raise ConfigError(
            "the server's URL holds a password", key=key, hint="give it in a file: password_file"
        )
    if parts.scheme not in _SCHEMES:
        raise ConfigError(f"{text!r} names no server", key=key, hint=_URL_HINT)
    if not parts.username:
        raise ConfigError(f"{text!r} names no user", key=key, hint=_URL_HINT)
    if parts.path not in ("", "/") or parts.fragment:
        raise ConfigError(
            f"{text!r} names a database: {parts.path}{parts.fragment}", key=key, hint=_URL_HINT
        )


def _options(query: str, key: str) -> dict[str, str]:
    # Not parse_qsl, which takes a plus sign in a path for a space.
    pairs = (option.partition("=") for option in query.split("&") if option)
    options = {unquote(name): unquote(value) for name, _, value in pairs}
    for name in options:
        if name not in _OPTIONS:
            near = get_close_matches(name, _OPTIONS, n=1)
            known = f"did you mean {near[0]}?" if near else f"known are {', '.join(_OPTIONS)}"
            raise ConfigError(f"the URL's option {name!r} is unknown", key=key, hint=known)
    return options


def _ssl_mode(text: str | None, key: str) -> SslMode:
    if text is None:
        return SslMode.PREFERRED
    try:
        return SslMode(text.upper())
    except ValueError:
        known = ", ".join(mode.value for mode in SslMode)
        raise ConfigError(
            f"ssl-mode {text!r} is unknown", key=key, hint=f"known are {known}"
        ) from None

"""A server's address, the account to use there, and TLS.

The address is a URL, `mariadb://user@host:port`, with the clients' options as its query:
`?socket=PATH`, `?ssl-mode=VERIFY_IDENTITY&ssl-ca=PATH`. Passwords never stand in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Final, Self
from urllib.parse import SplitResult, quote, unquote, urlencode, urlsplit

from binlane.errors import ConfigError

_SCHEMES: Final = ("mariadb", "mysql")
_OPTIONS: Final = ("socket", "ssl-mode", "ssl-ca", "ssl-cert", "ssl-key")
_DEFAULT_HOST: Final = "127.0.0.1"
_DEFAULT_PORT: Final = 3306
_URL_HINT: Final = "write mariadb://USER@HOST:PORT or mariadb://USER@localhost?socket=PATH"


class SslMode(Enum):
    """The values of the clients' option `--ssl-mode`."""

    DISABLED = "DISABLED"
    PREFERRED = "PREFERRED"
    REQUIRED = "REQUIRED"
    VERIFY_CA = "VERIFY_CA"
    VERIFY_IDENTITY = "VERIFY_IDENTITY"

    @property
    def is_required(self) -> bool:
        """True if a server without TLS is refused."""
        return self not in (SslMode.DISABLED, SslMode.PREFERRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerUrl:
    """The address of a server and the account to use there.

    Attributes:
        user: The account's name without a host.
        host: The server's name or IP address.
        port: The TCP port of the server.
        socket: Path of a Unix socket to use in place of TCP; None for TCP.
        ssl_mode: The rule by which TLS is used, and what is verified; a Unix socket needs none.
        ssl_ca: Path of the certificates that sign the server's; the system's by default.
        ssl_cert: Path of the client's own certificate.
        ssl_key: Path of that certificate's private key.
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
        """Parse a URL into settings.

        Args:
            text: The URL as it was typed.
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
        """The whole URL; `parse` turns it into the same settings."""
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

"""The option `server` and its companions → the log that ranges read.

A password stands in no option: what is given is the name of its file, or of a variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from binlane.errors import ConfigError
from binlane.tables.ranges.servers import server_uri

SERVER_OPTIONS: Final[Mapping[str, str]] = {
    "passwordFile": "password-file",
    "passwordEnv": "password-env",
    "socket": "socket",
    "sslMode": "ssl-mode",
    "sslCa": "ssl-ca",
    "sslCert": "ssl-cert",
    "sslKey": "ssl-key",
}
"""Options of the source, and what they are called in a server's URL."""


def server_place(url: str, user: str | None, options: Mapping[str, str]) -> str:
    """Return a server's URL with the options in it.

    Args:
        url: The URL as the user gave it; `mariadb://host:port` is enough if the others are options.
        user: The account's name, if it does not stand in the URL.
        options: Values by option name, of `SERVER_OPTIONS`.

    Raises:
        ConfigError: If the text is no URL of a server.
    """
    scheme, has_scheme, rest = url.partition("://")
    if not has_scheme:
        raise ConfigError(
            f"{url!r} names no server",
            key="server",
            hint="write mariadb://HOST:PORT or mysql://HOST:PORT",
        )
    if user is not None:
        if "@" in rest.partition("?")[0]:
            raise ConfigError("the server's URL names a user, too", key="user")
        rest = f"{quote(user, safe='')}@{rest}"
    given = {SERVER_OPTIONS[name]: value for name, value in options.items()}
    return server_uri(f"{scheme}://{rest}", given)

"""The settings of HTTP: its address, port and password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.errors import ConfigError

CONNECTIONS_MAX: Final = 64
"""Most connections at a time.

For one more the oldest has to go: whoever asks is answered at once, and may ask again.
"""

_PORT_MAX: Final = 65535
_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The section `[http]`.

    Attributes:
        address: IP address or host name to listen on.
        port: TCP port; 0 takes a free one.
        hosts: Further names under which it is asked.
        password_file: The file whose first line is the password; None asks for none.
    """

    address: str = "127.0.0.1"
    port: int = 8080
    hosts: tuple[str, ...] = ()
    password_file: Path | None = None

    def __post_init__(self) -> None:
        """Check that the values are in range.

        Raises:
            ConfigError: If the port is none, or a name is none.
        """
        if not 0 <= self.port <= _PORT_MAX:
            raise ConfigError(
                f"{self.port} is no TCP port", key="http.port", hint=f"use 0 to {_PORT_MAX}"
            )
        for name in self.hosts:
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{name!r} is no host name",
                    key="http.hosts",
                    hint="write names alone, such as monitor.example.com; addresses need not be listed",
                )

    def secret(self) -> str | None:
        """The password as the file has it now; None if no password is needed.

        Raises:
            ConfigError: If its file cannot be read, or holds none.
        """
        if self.password_file is None:
            return None
        hint = "its first line is the password, in UTF-8"
        try:
            text = self.password_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the password file {self.password_file} cannot be read: {error}",
                key="http.password_file",
                hint=hint,
            ) from None
        secret = text.partition("\n")[0].removesuffix("\r")
        if not secret:
            raise ConfigError(
                f"the password file {self.password_file} holds no password",
                key="http.password_file",
                hint=hint,
            )
        return secret

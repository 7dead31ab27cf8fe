"""Where operators ask over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.errors import ConfigError

CONNECTIONS_MAX: Final = 64
"""For one more the oldest has to go: whoever asks is answered at once, and may ask again."""

_PORT_MAX: Final = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """The section `[http]`.

    Attributes:
        address: IP address or host name to listen on.
        port: TCP port; 0 takes a free one.
    """

    address: str = "127.0.0.1"
    port: int = 8080

    def __post_init__(self) -> None:
        """Check the range.

        Raises:
            ConfigError: If the port is none.
        """
        if not 0 <= self.port <= _PORT_MAX:
            raise ConfigError(
                f"{self.port} is no TCP port", key="http.port", hint=f"use 0 to {_PORT_MAX}"
            )

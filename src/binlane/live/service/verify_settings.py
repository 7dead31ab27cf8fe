"""The section `[verify]`: how often tables are compared with servers, and with which."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from binlane.errors import ConfigError
from binlane.tables.ranges.served_logs import ServerPlace

_UNITS_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_HINT: Final = 'such as "1h", "15m", "30s" or "1d"; "0" for never by itself'


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """The section `[verify]`.

    Attributes:
        every_s: Time from the end of one round of comparisons to the next, in seconds; 0 compares
            only when CHECK BINLOG asks for it.
        rows_per_s: Rows that are read of a server a second at most; 0 for any number.
        replicas: URLs of replicas that are compared, too, as of `ServerPlace`; `#NAME` behind one
            names the binlog that it follows.
        replica_user: Account by which replicas are asked that registered with an address; empty to
            ask none.
        replica_password_file: File whose first line is that account's password.
    """

    every_s: float = 0.0
    rows_per_s: int = 20_000
    replicas: tuple[str, ...] = ()
    replica_user: str = ""
    replica_password_file: Path | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot be used.

        Raises:
            ConfigError: If a number is below 0, or a URL is none.
        """
        if self.rows_per_s < 0:
            raise ConfigError(f"{self.rows_per_s} is no number of rows", key="verify.rows_per_s")
        for url in self.replicas:
            try:
                ServerPlace.parse(url)
            except ConfigError as error:
                raise ConfigError(error.message, key="verify.replicas", hint=error.hint) from None


def duration_s(text: str, key: str) -> float:
    """A time such as `90s`, `15m`, `1h` or `1d`, in seconds; a bare number is one of seconds.

    Raises:
        ConfigError: If it is none.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower(), re.ASCII)
    if match is None:
        raise ConfigError(f"{text!r} is no time", key=key, hint=_HINT)
    return float(match[1]) * _UNITS_S[match[2] or "s"]

"""The section `[embedded]`: a MariaDB of binlane's own as the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from binlane.client.settings import ServerUrl
from binlane.errors import ConfigError
from binlane.live.capture.settings import SourceSettings

EMBEDDED_DIRECTORY: Final = "embedded"
"""Below the store's directory: data, passwords and log of the server."""
ACCOUNT: Final = "binlane"
"""binlane's own account there."""
ACCOUNT_PASSWORD_FILE: Final = "binlane-password"  # noqa: S105  # a file's name
ROOT_PASSWORD_FILE: Final = "root-password"  # noqa: S105  # as above
_SOCKET: Final = "server/server.sock"
"""Unless the path is too long for one; the server itself knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """The options with which the embedded server is run.

    Attributes:
        options: Further options of `mariadbd`, such as `--innodb-buffer-pool-size=4G`.
    """

    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse texts that are no options.

        Raises:
            ConfigError: If one does not begin with two dashes.
        """
        for option in self.options:
            if not option.startswith("--") or "\0" in option:
                raise ConfigError(
                    f"{option!r} is no option of mariadbd",
                    key="embedded.options",
                    hint="write them as on a command line: --NAME=VALUE",
                )


def embedded_source(data_dir: Path, values: Mapping[str, Any]) -> SourceSettings:
    """The server as the source that it is.

    Args:
        data_dir: The data directory of the store.
        values: The other values of the section `[source]`.

    Raises:
        ConfigError: As `SourceSettings`.
    """
    home = data_dir / EMBEDDED_DIRECTORY
    return SourceSettings(
        url=ServerUrl(user=ACCOUNT, host="localhost", socket=str(home / _SOCKET)),
        password_file=home / ACCOUNT_PASSWORD_FILE,
        **values,
    )

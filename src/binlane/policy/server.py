"""Whose rules are followed: a server's flavor and version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from binlane.errors import ConfigError

_DEFAULT_VERSIONS: Final = {"mariadb": (10, 11, 19), "mysql": (9, 7, 0)}


@dataclass(frozen=True, slots=True)
class Server:
    """A server's flavor and version, which decide how statements are logged.

    Attributes:
        flavor: `mariadb` or `mysql`.
        version: Three numbers.
    """

    flavor: str
    version: tuple[int, int, int]

    @property
    def is_mariadb(self) -> bool:
        """MariaDB, not MySQL."""
        return self.flavor == "mariadb"

    @property
    def has_server_foreign_keys(self) -> bool:
        """Foreign keys are the server's own work, not InnoDB's: MySQL since 9.6.

        It then opens the tables of foreign keys, and logs the rows that they change.
        """
        return not self.is_mariadb and self.version >= (9, 6, 0)

    @property
    def has_atomic_ddl(self) -> bool:
        """DDL of InnoDB tables is committed together with its log: MySQL since 8.0."""
        return not self.is_mariadb and self.version >= (8, 0, 0)

    @property
    def fills_as_it_creates(self) -> bool:
        """CREATE … SELECT logs the table and its rows in one group.

        MySQL before 8.0.21 logs the table by itself first.
        """
        return self.is_mariadb or self.version >= (8, 0, 21)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `mariadb`, `mysql`, `mariadb:11.8`, `mysql:8.0.36`.

        Raises:
            ConfigError: If it is something else.
        """
        flavor, _, version = text.strip().lower().partition(":")
        if flavor not in _DEFAULT_VERSIONS:
            raise ConfigError(
                f"{text!r} is no server", key="--server", hint="say mariadb or mysql, as mysql:8.0"
            )
        if not version:
            return cls(flavor, _DEFAULT_VERSIONS[flavor])
        parts = version.partition("-")[0].split(".")
        if len(parts) > 3 or not all(part.isdigit() for part in parts):
            raise ConfigError(
                f"{version!r} is no version", key="--server", hint="say it as mysql:8.0.36"
            )
        numbers = [int(part) for part in parts] + [0, 0]
        return cls(flavor, (numbers[0], numbers[1], numbers[2]))

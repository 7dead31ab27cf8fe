"""A check's knowledge of a server's objects: scripts that make them, and facts that a server told.

The header of a dump also tells which server the dump is of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from binlane.errors import ConfigError
from binlane.statements.policy.server import Server
from binlane.statements.sql.catalog import CatalogProblem, SchemaCatalog, ToldStatement
from binlane.statements.sql.script import Script

_HEADER_BYTES: Final = 4096
# The version lines of mysqldump and mariadb-dump, and of phpMyAdmin.
_VERSION: Final = re.compile(
    rb"^-- (?:Server version\s|Server version: )\s*(\d+\.\d+(?:\.\d+)?)([^\r\n]*)", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """One source of definitions.

    Attributes:
        name: Name of the source in messages: the path of a file, the address of a server.
        script: Text or bytes of the script, as the clients take it.
        definitions: Statements that a server told.
        variables: Names and values of that server's global variables.
    """

    name: str
    script: str | Script = b""
    definitions: Sequence[ToldStatement] = ()
    variables: tuple[tuple[str, str], ...] = ()

    def load(self, catalog: SchemaCatalog, server: Server) -> list[CatalogProblem]:
        """Put the source's objects into a catalog.

        Returns:
            The problems of parts that were not understood.
        """
        before = len(catalog.problems)
        for name, value in self.variables:
            catalog.apply(f"SET GLOBAL {name} = '{value}'", database="")
        catalog.load_statements(self.definitions)
        script = self.script
        text = script if isinstance(script, str) else script[:].decode("utf-8", "surrogateescape")
        catalog.load(
            text.removeprefix("\ufeff"),
            database=catalog.default_database,
            version=server.version,
        )
        return list(catalog.problems[before:])


def server_of_dump(script: Script) -> Server | None:
    """The server that a dump was taken from; None if its header does not tell.

    Raises:
        ConfigError: If there is no such server.
    """
    found = _VERSION.search(bytes(script[:_HEADER_BYTES]))
    return (
        None
        if found is None
        else server_of_version((found[1] + found[2]).decode("utf-8", "replace"))
    )


def server_of_version(version: str) -> Server:
    """Return the server that gives its version as `10.11.6-MariaDB-log` or `8.0.36`.

    Raises:
        ConfigError: If there is no such server.
    """
    flavor = "mariadb" if "mariadb" in version.lower() else "mysql"
    number = re.match(r"\d+\.\d+(\.\d+)?", version)
    if number is None:
        raise ConfigError(f"{version!r} is no version", key="--schema", hint="say --server")
    return Server.parse(f"{flavor}:{number[0]}")

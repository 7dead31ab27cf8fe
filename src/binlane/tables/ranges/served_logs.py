"""A live server as a place where a log is: its files, and their bytes by dumps that do not wait.

The place is the server's URL with two options of its own, `password-file` and `password-env`, which
name where the password is; a file of the log is named behind `#`. Passwords stand in no URL, and so
in nothing that travels or is written down.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote, unquote

from binlane.client.account import account_at
from binlane.client.log_files import ServerLog, list_log
from binlane.client.remote import read_file
from binlane.client.remote_machine import RemoteRequest
from binlane.client.settings import ServerUrl
from binlane.errors import ConfigError
from binlane.log.codec.format import MAGIC

PASSWORD_FILE: Final = "password-file"  # noqa: S105 - the name of an option
_PASSWORD_ENV: Final = "password-env"  # noqa: S105 - the name of an option
PASSWORD_OPTIONS: Final = (PASSWORD_FILE, _PASSWORD_ENV)
"""Options of a server's URL that say where its password is."""
_ENV_DEFAULT: Final = "MYSQL_PWD"


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """A server, or a file of its log.

    Attributes:
        url: The URL of the server itself.
        password_file: Path of the file with the server's password; None for the environment.
        password_env: The variable that has the password if there is no file.
        file: Base name of a file of the log; empty for the whole log.
    """

    url: ServerUrl
    password_file: str | None
    password_env: str
    file: str

    @classmethod
    def parse(cls, place: str) -> Self:
        """Read `mariadb://user@host:port?password-file=PATH#binlog.000003`.

        Raises:
            ConfigError: If it is no URL of a server, or holds a password.
        """
        address, _, file = place.partition("#")
        base, _, query = address.partition("?")
        own: dict[str, str] = {}
        rest: list[str] = []
        for option in filter(None, query.split("&")):
            name, _, value = option.partition("=")
            if name in (PASSWORD_FILE, _PASSWORD_ENV):
                own[name] = unquote(value)
            else:
                rest.append(option)
        text = f"{base}?{'&'.join(rest)}" if rest else base
        return cls(
            url=ServerUrl.parse(text, key="source"),
            password_file=own.get(PASSWORD_FILE),
            password_env=own.get(_PASSWORD_ENV, _ENV_DEFAULT),
            file=file,
        )

    def password(self) -> str:
        """The password, looked up where this process runs.

        Raises:
            ConfigError: If its file cannot be read.
        """
        if self.password_file is None:
            return os.environ.get(self.password_env, "")
        try:
            text = Path(self.password_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"the password of {self.url} cannot be read: {error}",
                key=PASSWORD_FILE,
                hint="whoever reads the log needs the file: put it on every worker, "
                "or give password-env, the name of an environment variable",
            ) from None
        return text.partition("\n")[0].removesuffix("\r")

    def log(self) -> ServerLog:
        """The server's log as it is now.

        Raises:
            PeerError: If the server cannot be asked.
            ConfigError: If there is no password, or no certificate, to be read.
        """
        return list_log(self.url, self.password())

    def chunks(self, position: int) -> Iterator[bytes]:
        """The bytes of the file from a position on: 0, or where an event begins.

        Raises:
            PeerError: If the server cannot be reached, or refuses something.
            ConfigError: If there is no password, or no certificate, to be read.
        """
        if position < len(MAGIC):
            yield MAGIC[position:]
            position = len(MAGIC)
        request = RemoteRequest(
            account=account_at(self.url, self.password()),
            file=self.file,
            position=position,
        )
        dump: Generator[bytes, None, None] = read_file(self.url, request)
        try:
            yield from dump
        finally:
            dump.close()

    def __str__(self) -> str:
        """Return the place as messages name it."""
        return f"{self.url}#{self.file}" if self.file else str(self.url)


def server_uri(url: str, options: Mapping[str, str]) -> str:
    """The URL of a server, or of a file of its log, with more options.

    Args:
        url: The URL as the user gave it.
        options: By the names that they have in URLs.
    """
    place, has_file, file = url.partition("#")
    given = "&".join(f"{name}={quote(value)}" for name, value in options.items())
    if given:
        place += ("&" if "?" in place else "?") + given
    return f"{place}{has_file}{file}"


def file_of(place: str, name: str) -> str:
    """The URI of a file of a server's log."""
    return f"{place.partition('#')[0]}#{name}"

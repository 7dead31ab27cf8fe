"""From where sessions are drawn: at random, from the grammar, from settings, from applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.statements.policy.server import Server
from binlane.statements.sql.servers import Dialect
from tests.differential.logging import grammar, schemas, settings
from tests.differential.logging.generator import Generator
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.scripts import Script
from tests.differential.logging.sessions import VERSIONS

SOURCES: Final = ("sessions", "grammar", "settings", "applications")
_STATEMENTS: Final = 4
"""Drawn for each session of the grammar, beside what surrounds them."""
VARIETIES: Final = (0.0, 0.15, 0.4)
"""A night draws each production once with as little as can be beside it, then with more."""


def dialect(recorder: Recorder) -> Dialect:
    """How a server reads statements."""
    server = Server.parse(VERSIONS.get(recorder.server_name, recorder.server_name))
    return Dialect(flavor=server.flavor, version=server.version)


class Source:
    """Sessions by their seeds; of applications, `only` those that are named, if any is.

    Attributes:
        name: One of `SOURCES`.
        night: First seed of a night, and the one behind its last.
    """

    def __init__(
        self, name: str, recorder: Recorder, *, length: int = 60, only: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._recorder, self._length = recorder, length
        self._flavor = recorder.server.flavor
        self.night = (30000, 31000)
        if name == "grammar":
            self._grammar = grammar.Grammar(dialect(recorder))
            self._targets = list(grammar.sessions(self._grammar, size=_STATEMENTS))
            self.night = (0, len(self._targets) * len(VARIETIES))
        elif name == "settings":
            self._rows = list(settings.rows(self._flavor))
            self.night = (0, len(self._rows))

        elif name == "applications":
            self._applications = schemas.Applications(recorder, dialect(recorder), only)
            self.night = (0, 1500)

    def script(self, seed: int) -> Script:
        """The session of a seed."""
        if self.name == "grammar":
            turn, index = divmod(seed, len(self._targets))
            variety = VARIETIES[turn % len(VARIETIES)]
            return grammar.script(self._grammar, self._targets[index], seed, variety)
        if self.name == "applications":
            return self._applications.script(seed)
        if self.name == "settings":
            return settings.script(self._flavor, self._rows[seed % len(self._rows)], seed)
        drawn = Generator(self._flavor, seed, has_blackhole=self._recorder.has_blackhole)
        return drawn.script(self._length)

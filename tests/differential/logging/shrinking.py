"""A session that differs, made as short as it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.differential.logging.recorder import Recorded, Recorder
from tests.differential.logging.scripts import Script, needed
from tests.differential.logging.sessions import Difference, first_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A script in which we differ from the server.

    Attributes:
        script: The script.
        recorded: What the server did.
        difference: The first thing in which we differ.
    """

    script: Script
    recorded: tuple[Recorded, ...]
    difference: Difference

    @property
    def statement(self) -> str:
        """The statement that differs; empty for the end of the session."""
        return self.recorded[self.difference.index].sql


def record(recorder: Recorder, script: Script) -> tuple[Script, tuple[Recorded, ...]]:
    """Run a script on its objects; what comes back ends where the server ends the session."""
    recorder.reset(script.schema)
    recorded = tuple(recorder.run(script.texts))
    return replace(script, statements=script.statements[: len(recorded) - 1]), recorded


def run(recorder: Recorder, script: Script) -> Found | None:
    """Record a script and compare; None if all is equal."""
    return compared(recorder, *record(recorder, script))


def compared(recorder: Recorder, script: Script, recorded: tuple[Recorded, ...]) -> Found | None:
    """Compare what a server did with a script with ours; None if all is equal."""
    difference = first_difference(recorder.server_name, script, recorded)
    if difference is None:
        return None
    return Found(script=script, recorded=recorded, difference=difference)


def shrunk(recorder: Recorder, found: Found) -> Found:
    """Leave out statements as long as the same statement still differs in the same aspect."""
    found = _without(recorder, found, range(found.difference.index + 1, 10_000)) or found
    size = max(1, len(found.script.statements) // 2)
    while size >= 1:
        start = 0
        while start < len(found.script.statements):
            smaller = _without(recorder, found, range(start, start + size))
            if smaller is None:
                start += size
            else:
                found = smaller
        size //= 2
    return found


def _without(recorder: Recorder, found: Found, left_out: Sequence[int]) -> Found | None:
    kept = tuple(
        statement
        for index, statement in enumerate(found.script.statements)
        if index not in left_out
    )
    if len(kept) == len(found.script.statements):
        return None
    texts = [statement.sql for statement in kept]
    smaller = run(recorder, Script(schema=needed(found.script.schema, texts), statements=kept))
    if smaller is None or _what(smaller) != _what(found):
        return None
    return smaller


def _what(found: Found) -> tuple[str, str]:
    return found.difference.aspect, found.statement

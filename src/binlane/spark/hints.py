"""Hints of errors, on their way through Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from binlane.errors import BinlaneError


@contextmanager
def hints_shown() -> Iterator[None]:
    """Add the hint of an error to its traceback, which is all of it that Spark passes on."""
    try:
        yield
    except BinlaneError as error:
        if error.hint:
            error.add_note(f"hint: {error.hint}")
        raise

"""Readers that call each other without the depth of Python's own stack.

A reader that needs another one yields it and gets back what that returns. So texts may nest as
deeply as memory allows, where calls would end in a RecursionError.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

Result = TypeVar("Result")

Steps = Generator["Steps[Any]", Any, Result]


def run(first: Steps[Result]) -> Result:
    """Run a reader and all that it yields, and give its result."""
    running: list[Steps[Any]] = [first]
    value: Any = None
    while running:
        try:
            needed = running[-1].send(value)
        except StopIteration as ended:
            running.pop()
            value = ended.value
        else:
            running.append(needed)
            value = None
    result: Result = value
    return result

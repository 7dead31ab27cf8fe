"""Long texts of clients, read in a thread of their own: meanwhile other sessions go on.

A text of some megabytes takes seconds to read. All sessions share one thread for that, so that the
event loop waits for one other thread at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from binlane.statements.sql.tokens import LONG

_threads: Final = ThreadPoolExecutor(1, thread_name_prefix="long texts")
_T = TypeVar("_T")


def is_long(text: str) -> bool:
    """True if a text is not to be read in the event loop."""
    return len(text) > LONG


async def read_beside(work: Callable[[], _T]) -> _T:
    """Read a long text, or several; results and errors are those of `work`."""
    return await asyncio.get_running_loop().run_in_executor(_threads, work)

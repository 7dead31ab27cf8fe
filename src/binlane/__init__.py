"""Several named, scoped binary logs for a stock MariaDB or MySQL server.

`read`, `scan`, `connect` and `land` are the Python interface; they are imported when they are first
used, so that `import binlane` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from binlane.version import __version__

if TYPE_CHECKING:
    from binlane.api import connect, land, read, scan

__all__ = ["__version__", "connect", "land", "read", "scan"]


def __getattr__(name: str) -> Any:
    if name in {"connect", "land", "read", "scan"}:
        from binlane import api  # noqa: PLC0415 - imports pyarrow

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

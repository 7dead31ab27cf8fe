"""Escapes for characters that mysqlbinlog never prints as they are; importing them loads no JSON."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Control characters, quotes and backslashes of any literal that mysqlbinlog prints.
MYSQL_ESCAPES: Final[Mapping[int, str]] = MappingProxyType(
    {
        **{code: f"\\x{code:02x}" for code in range(32)},
        ord("\n"): "\\n",
        ord("\r"): "\\r",
        ord("\b"): "\\b",
        ord("\t"): "\\t",
        ord("\f"): "\\f",
        ord("'"): "\\'",
        ord("\\"): "\\\\",
    }
)

"""Texts of peers as they are logged: no longer than anybody reads, and of visible characters only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from binlane.log.codec.packets.commands import BinlogDump, BinlogDumpGtid
from binlane.log.codec.types import Flavor
from binlane.visible import visible

_SHOWN_MAX: Final = 300


def shown(value: object) -> str:
    """The text of something that a peer may have made as long as it liked."""
    text = str(value)
    if len(text) <= _SHOWN_MAX:
        return visible(text)
    return f"{visible(text[:_SHOWN_MAX])}… ({len(text)} characters)"


def start_of(
    command: BinlogDump | BinlogDumpGtid, variables: Mapping[str, str | None], flavor: Flavor
) -> str:
    """Give the place from which on a replica wants its dump."""
    if isinstance(command, BinlogDumpGtid):
        return "by GTID"
    state = variables.get("slave_connect_state")
    if state is not None and flavor is Flavor.MARIADB:
        return f"from GTID {state or '(none)'} on"
    return f"from {command.file or 'the first file'}:{command.position} on"

"""The check that a file's GTIDs have the flavor of its FORMAT_DESCRIPTION; else it is damaged."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from binlane.errors import CodecError
from binlane.log.codec.format import Format
from binlane.log.codec.types import EventType, Flavor

NEVER_IN: Final[Mapping[Flavor, frozenset[EventType]]] = MappingProxyType(
    {
        Flavor.MARIADB: frozenset(
            {
                EventType.GTID_LOG,
                EventType.ANONYMOUS_GTID_LOG,
                EventType.GTID_TAGGED_LOG,
                EventType.PREVIOUS_GTIDS_LOG,
            }
        ),
        Flavor.MYSQL: frozenset({EventType.GTID, EventType.GTID_LIST}),
    }
)
"""Types that say which GTIDs there are, and that the servers of a flavor never write."""
_NAMES: Final = MappingProxyType({Flavor.MARIADB: "MariaDB", Flavor.MYSQL: "MySQL"})


def check_flavor(type_code: int, format_: Format | None) -> None:
    """Check that an event's GTIDs fit the flavor of its file.

    Args:
        type_code: The type code of the event.
        format_: The format of the FORMAT_DESCRIPTION before it.

    Raises:
        CodecError: If they are of the other flavor.
    """
    if format_ is not None and type_code in NEVER_IN[format_.flavor]:
        raise CodecError(
            f"{EventType(type_code).name} stands in a file of {_NAMES[format_.flavor]} "
            f"(version {format_.server_version})",
            hint="the file is damaged here, or its server was told to give another version text",
        )

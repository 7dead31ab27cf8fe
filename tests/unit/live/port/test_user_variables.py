"""Values of user variables as USER_VAR events hold them."""

from __future__ import annotations

import pytest

from binlane.live.port.user_variables import asked, variable_event
from binlane.log.codec.packets.flags import ServerStatus
from binlane.log.codec.packets.results import ColumnDefinition, ResultSet
from binlane.log.codec.types import ColumnType, Flavor
from binlane.log.codec.variables import UserVarEvent, UserVarType


def event_of(
    kind: ColumnType, *cells: bytes | None, flags: int = 0, flavor: Flavor = Flavor.MARIADB
) -> UserVarEvent | None:
    heads = (
        ColumnDefinition(name="v", type_code=kind, flags=flags),
        ColumnDefinition(name="h"),
        ColumnDefinition(name="c"),
    )
    answer = ResultSet(("v", "h", "c"), (cells,), ServerStatus.AUTOCOMMIT, heads=heads)
    return variable_event(b"v", answer, 0, flavor)


def test_names_are_quoted() -> None:
    assert asked("a`b")[0] == "@`a``b`"


@pytest.mark.parametrize(
    "text, flags, value",
    [
        (b"-7", 0, (-7).to_bytes(8, "little", signed=True)),
        (b"18446744073709551615", 32, b"\xff" * 8),
        (b"\x005", 0, (5).to_bytes(8, "little")),  # in UTF-16
    ],
)
def test_whole_numbers(text: bytes, flags: int, value: bytes) -> None:
    event = event_of(ColumnType.LONGLONG, text, b"5", b"binary", flags=flags)

    assert event is not None
    assert (event.type_code, event.value) == (UserVarType.INT, value)
    assert (event.collation_id, event.flags) == (8, flags // 32)


def test_other_kinds() -> None:
    null = event_of(ColumnType.VAR_STRING, None, None, b"binary")
    assert null == UserVarEvent(name=b"v", is_null=1)
    real = event_of(ColumnType.DOUBLE, b"1e3", b"3E8", b"binary")
    assert real is not None
    assert real.value == b"\0\0\0\0\0\x40\x8f\x40"
    text = event_of(ColumnType.VAR_STRING, b"\xff", b"00FF27", b"latin1_bin")
    assert text is not None
    assert (text.value, text.collation_id, text.flags) == (b"\x00\xff\x27", 47, None)
    assert event_of(ColumnType.VAR_STRING, b"x", b"78", b"own_collation") is None

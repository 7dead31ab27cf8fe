from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import CodecError, UnsupportedError
from binlane.log.codec.packets.flags import (
    NO_CAPABILITIES,
    NO_EXTENSIONS,
    Capability,
    ExtendedCapability,
    ServerStatus,
)
from binlane.log.codec.packets.framing import PacketSplitter, frames
from binlane.log.codec.packets.replies import ErrPacket, OkPacket
from binlane.log.codec.packets.results import (
    BINARY_COLLATION,
    Cell,
    ColumnDefinition,
    ReplyReader,
    ResultSet,
)
from tests.result_sets import encode_result_set

# What MariaDB 10.11.19 answered to: select 1 as n, null as x, 'é' as t.
PLAIN_ANSWER = bytes.fromhex(
    "01000001031700000203646566000000016e000c3f000100000003810000000017000003036465660000000178"
    "000c3f000000000006800000000017000004036465660000000174000c2d0004000000fd0100270000050000"
    "05fe00000000060000060131fb02c3a905000007fe00000000"
)
EXTENDED_ANSWER = bytes.fromhex(
    "0200000103011800000203646566000000016e00000c3f000100000003810000000018000003036465660000"
    "00017800000c3f00000000000680000000001800000403646566000000017400000c210003000000fd010027"
    "000005000005fe00000200060000060131fb02c3a905000007fe00000200"
)
NO_STATUS = ServerStatus(0)
MARIADB_EXTENSIONS = ExtendedCapability.EXTENDED_METADATA | ExtendedCapability.CACHE_METADATA


def read_reply(
    payloads: Sequence[bytes], capabilities: Capability
) -> OkPacket | ErrPacket | ResultSet:
    """The reply that packets make; nothing before the last one makes it whole."""
    reader = ReplyReader(capabilities)
    *before, last = payloads
    for payload in before:
        assert reader.feed(payload) is None
    reply = reader.feed(last)
    assert reply is not None
    return reply


def columns_of(text_column: ColumnDefinition) -> list[ColumnDefinition]:
    number = ColumnDefinition(
        name="n", character_set=BINARY_COLLATION, length=1, type_code=3, flags=0x81
    )
    null = ColumnDefinition(
        name="x", character_set=BINARY_COLLATION, length=0, type_code=6, flags=0x80
    )
    return [number, null, text_column]


def test_an_answer_is_encoded_as_mariadb_does() -> None:
    text = ColumnDefinition(name="t", length=4, flags=1, decimals=39)
    payloads = encode_result_set(
        columns_of(text),
        [(1, None, "é")],
        capabilities=NO_CAPABILITIES,
        status=NO_STATUS,
    )
    assert frames(payloads, 1) == PLAIN_ANSWER


def test_extended_metadata_is_encoded_as_mariadb_does() -> None:
    text = ColumnDefinition(name="t", character_set=33, length=3, flags=1, decimals=39)
    payloads = encode_result_set(
        columns_of(text),
        [(b"1", None, "é")],
        capabilities=NO_CAPABILITIES,
        extended=MARIADB_EXTENSIONS,
    )
    assert frames(payloads, 1) == EXTENDED_ANSWER


def test_an_answer_of_mariadb_is_read() -> None:
    payloads = [packet.payload for packet in PacketSplitter().feed(PLAIN_ANSWER)]
    result = read_reply(payloads, NO_CAPABILITIES)
    assert isinstance(result, ResultSet)
    assert result.columns == ("n", "x", "t")
    assert result.texts() == (("1", None, "é"),)
    assert result.status == NO_STATUS


cells = st.one_of(st.none(), st.integers(), st.binary(max_size=300), st.text(max_size=20))


@pytest.mark.parametrize(
    "capabilities",
    [
        NO_CAPABILITIES,
        Capability.DEPRECATE_EOF,
        Capability.DEPRECATE_EOF | Capability.SESSION_TRACK,
    ],
)
@given(rows=st.lists(st.tuples(cells, cells), max_size=5))
def test_result_sets_are_read_back(capabilities: Capability, rows: list[tuple[Cell, Cell]]) -> None:
    columns = [ColumnDefinition(name="a"), ColumnDefinition.integer("b")]
    payloads = encode_result_set(columns, rows, capabilities=capabilities)
    result = read_reply(payloads, capabilities)
    assert isinstance(result, ResultSet)
    assert result.columns == ("a", "b")
    assert result.rows == tuple(tuple(map(sent_as, row)) for row in rows)


def sent_as(cell: Cell) -> bytes | None:
    if cell is None or isinstance(cell, bytes):
        return cell
    return str(cell).encode()


def test_column_definitions_are_decoded_back() -> None:
    column = ColumnDefinition(
        name="n", original_name="id", database="shop", table="o", original_table="orders", flags=3
    )
    for extended in (NO_EXTENSIONS, MARIADB_EXTENSIONS):
        assert ColumnDefinition.decode(column.encode(extended), extended) == column


def test_a_reply_may_be_an_error_in_the_middle_of_rows() -> None:
    payloads = encode_result_set(
        [ColumnDefinition(name="a")], [("1",)], capabilities=NO_CAPABILITIES
    )
    error = ErrPacket(errno=1317, message="Query execution was interrupted", sqlstate="70100")
    assert read_reply([*payloads[:-1], error.encode()], NO_CAPABILITIES) == error


def test_a_reply_may_be_ok() -> None:
    assert read_reply([OkPacket().encode(NO_CAPABILITIES)], NO_CAPABILITIES) == OkPacket()


def test_a_first_cell_of_16_mb_is_no_end_of_rows() -> None:
    cell = bytes(1 << 24)
    payloads = encode_result_set(
        [ColumnDefinition(name="a")], [(cell,)], capabilities=Capability.DEPRECATE_EOF
    )
    result = read_reply(payloads, Capability.DEPRECATE_EOF)
    assert isinstance(result, ResultSet)
    assert result.rows == ((cell,),)


def test_local_files_are_never_sent() -> None:
    with pytest.raises(UnsupportedError, match="local file"):
        ReplyReader(NO_CAPABILITIES).feed(b"\xfb/etc/passwd")


def test_a_row_with_too_few_cells_is_an_error() -> None:
    payloads = encode_result_set(
        [ColumnDefinition(name="a"), ColumnDefinition(name="b")],
        [("1",)],
        capabilities=NO_CAPABILITIES,
    )
    with pytest.raises(CodecError):
        read_reply(payloads, NO_CAPABILITIES)


def test_an_answer_with_extended_metadata_is_read() -> None:
    reader = ReplyReader(NO_CAPABILITIES, MARIADB_EXTENSIONS)
    *_, reply = [reader.feed(packet.payload) for packet in PacketSplitter().feed(EXTENDED_ANSWER)]
    assert isinstance(reply, ResultSet)
    assert reply.texts() == (("1", None, "é"),)

"""What is fuzzed: each target takes any bytes and may raise nothing but a `BinlaneError`.

A target also checks what must hold of the bytes that do decode: what is encoded again decodes to
the same. Hangs and memory are watched by the fuzzer that runs them (`run.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from binlane.cat.json_lines import JsonLines
from binlane.cat.text.lines import TextLines
from binlane.cat.text.options import TextOptions
from binlane.codec.columns import decode_rows
from binlane.codec.encryption import KeyRing
from binlane.codec.event import Event, decode_event, encode_event
from binlane.codec.format import CHECKSUM_LENGTH, HEADER_LENGTH
from binlane.codec.json_binary import decode_json
from binlane.codec.packets.handshake import Greeting, HandshakeResponse
from binlane.codec.registry import OpaqueEvent
from binlane.codec.status_vars import decode_status_vars
from binlane.codec.table_metadata import primary_key, table_columns
from binlane.codec.types import Flavor
from binlane.columnar.batches import batches
from binlane.errors import BinlaneError
from binlane.grouping.event_group import group_events
from binlane.grouping.inner import expanded, expanded_all
from binlane.grouping.table_maps import rows_with_tables
from binlane.grouping.walk import walk
from binlane.sql.analysis import analyse
from binlane.sql.catalog import SchemaCatalog
from tests.build import FORMAT, PLAIN_FORMAT, event, rows, table_map
from tests.fixture_sets import fixture_names, fixture_set

_SMALL_BYTES: Final = 12_000


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to fuzz.

    Attributes:
        run: Takes the bytes.
        seeds: What to begin with.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


def _body(data: bytes) -> None:
    """One event body of the type that the first byte names, in both flavors."""
    if not data:
        return
    for format_ in _FORMATS:
        encoded = encode_event(event(OpaqueEvent(data=data[1:]), type_code=data[0]), format_)
        with suppress(BinlaneError):
            decoded = decode_event(encoded, format_)
            again = encode_event(decoded, format_)
            assert decode_event(again, format_).body == decoded.body
            for inner in expanded(decoded, format_):
                assert inner.position == decoded.position


def _file(data: bytes) -> None:
    """A whole file: walked, grouped, and its rows decoded."""
    with suppress(BinlaneError):
        for group in group_events(walk([data], file="f"), file="f"):
            assert group.events
    with suppress(BinlaneError):
        for _, body, described in rows_with_tables(_expanded(data), file="f"):
            primary_key(described)
            for _ in decode_rows(body, table_columns(described, flavor=Flavor.MARIADB)):
                pass


def _printed(data: bytes) -> None:
    """A whole file as JSON and as text."""
    for renderer in (JsonLines(with_rows=True), TextLines(TextOptions(verbose=2))):
        with suppress(BinlaneError):
            for item in _expanded(data):
                for line in renderer.lines(item, file="f"):
                    line.encode("utf-8", "surrogateescape")


def _batches(data: bytes) -> None:
    """A whole file to Arrow."""
    with suppress(BinlaneError):
        for batch in batches(group_events(walk([data], file="f"), file="f")):
            batch.validate(full=True)


def _rows(data: bytes) -> None:
    """A table of up to 15 columns, and images of its rows."""
    if len(data) < 2:
        return
    count, metadata_length = data[0] & 15, data[1]
    types, rest = data[2 : 2 + count], data[2 + count :]
    described = table_map(*types, metadata=rest[:metadata_length])
    images = rest[metadata_length:]
    for flavor in Flavor:
        with suppress(BinlaneError):
            columns = table_columns(described, flavor=flavor)
            for _ in decode_rows(rows(len(types), images), columns):
                pass


def _small_parts(data: bytes) -> None:
    """Everything that is decoded on its own."""
    parts: tuple[Callable[[bytes], object], ...] = (
        decode_json,
        decode_status_vars,
        Greeting.decode,
        HandshakeResponse.decode,
        KeyRing.parse,
        lambda some: table_columns(
            table_map(1, 254, 252, metadata=b"\xfe\x20\x02", optional_metadata=some),
            flavor=Flavor.MYSQL,
        ),
    )
    for part in parts:
        with suppress(BinlaneError):
            part(data)


def _sql(data: bytes) -> None:
    """A statement: analysed, and applied to a catalog."""
    statement = data.decode("utf-8", "surrogateescape")
    with suppress(BinlaneError):
        analyse(statement, database="shop")
    with suppress(BinlaneError):
        SchemaCatalog().apply(statement, database="shop")


def _expanded(data: bytes) -> Iterator[Event]:
    return expanded_all(walk([data], file="f"), file="f")


def _files() -> Iterator[bytes]:
    for name in fixture_names():
        for _, data in fixture_set(name).binlogs:
            if len(data) <= _SMALL_BYTES:
                yield data


def _bodies() -> Iterator[bytes]:
    """One body of each type that the small files hold."""
    seen: set[int] = set()
    for data in _files():
        with suppress(BinlaneError):
            for item in walk([data], file="f"):
                if item.header.type_code not in seen:
                    seen.add(item.header.type_code)
                    start, end = item.position + HEADER_LENGTH, item.next_position - CHECKSUM_LENGTH
                    yield bytes((item.header.type_code,)) + data[start:end]


def _statements() -> Iterator[bytes]:
    for name in ("md1011_ddl", "md1011_stored", "md1011_format_statement"):
        yield from fixture_set(name).files["script.sql"].split(b";\n")


def _none() -> Iterator[bytes]:
    yield from (b"", bytes(range(64)))


_FORMATS: Final = (FORMAT, PLAIN_FORMAT)
TARGETS: Final[Mapping[str, Target]] = MappingProxyType(
    {
        "body": Target(_body, _bodies),
        "file": Target(_file, _files),
        "printed": Target(_printed, _files),
        "batches": Target(_batches, _files),
        "rows": Target(_rows, _none),
        "parts": Target(_small_parts, _none),
        "sql": Target(_sql, _statements),
    }
)

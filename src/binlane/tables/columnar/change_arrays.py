"""Facts that all images of an event share → the columns that batches begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlane.log.grouping.window import PADDING
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels
from binlane.positions import file_number
from binlane.tables.columnar.conversions import array, filled
from binlane.tables.columnar.counters import Ordinals
from binlane.tables.columnar.noted_events import NotedEvents, Numbers, Small
from binlane.tables.columnar.table_schema import CHANGE_TYPES, SEQUENCE_FILE_BITS

ROWS_MAX: Final = 8128
"""Rows of an array."""

_MICROSECONDS: Final = 1_000_000
_SERVER_ID_OFFSET: Final = 5
_OPS: Final = ("insert", "update_before", "update_after", "delete")
_OP_ROOM: Final = 16
_OP_LENGTHS: Final = np.array([len(op) for op in _OPS], np.int32)
_OP_TEXTS: Final = np.frombuffer(
    b"".join(op.encode().ljust(_OP_ROOM) for op in _OPS) + bytes(PADDING), np.uint8
).copy()


class FirstNumbers(NamedTuple):
    """Numbers of the first change and image of each event in a table of events."""

    changes: Numbers
    images: Numbers


def needs_numbers(names: tuple[str, ...], *, is_xa: bool) -> bool:
    """True if some change columns need the numbers of changes or images in a transaction."""
    return "_txn_order" in names or (is_xa and "_row" in names)


def first_numbers(ordinals: Ordinals, noted: NotedEvents, notes: Sequence[Small]) -> FirstNumbers:
    """Number the changes and images of some rows events, and count them in.

    Args:
        ordinals: Numbers of the transaction before the events, which may go on in them.
        noted: The rows events to number.
        notes: Facts about all images of the events, as the kernel `locate` gives them, a table at a
            time.
    """
    count = noted.groups.shape[0]
    owners, ops = np.concatenate([note[:2] for note in notes], axis=1)
    images: Numbers = np.bincount(owners, minlength=count)
    changes: Numbers = np.bincount(owners[ops != layout.UPDATE_AFTER], minlength=count)
    starts = noted.starts[noted.groups]
    changed = np.flatnonzero(np.diff(starts)) + 1
    begins = np.zeros(count, np.intp)  # of each event, the first one of its transaction
    begins[changed] = changed
    begins = np.maximum.accumulate(begins)
    ordinals.begin(int(starts[0]))
    first = FirstNumbers(_from_begin(changes, begins), _from_begin(images, begins))
    is_open = begins == 0
    first.changes[is_open] += ordinals.changes
    first.images[is_open] += ordinals.images
    ordinals.group = int(starts[-1])
    ordinals.changes = int(first.changes[-1] + changes[-1])
    ordinals.images = int(first.images[-1] + images[-1])
    return first


def _from_begin(counts: Numbers, begins: npt.NDArray[np.intp]) -> Numbers:
    """Return how many there are before each event within the event's transaction."""
    before: Numbers = np.cumsum(counts) - counts
    numbers: Numbers = before - before[begins]
    return numbers


def _image_numbers(notes: Small) -> Numbers:
    """The number of each image within its event."""
    is_after = notes[1] == layout.UPDATE_AFTER
    is_update = is_after | (notes[1] == layout.UPDATE_BEFORE)
    numbers: Numbers = notes[2].astype(np.int64)
    numbers += numbers * is_update
    numbers += is_after
    return numbers


def change_arrays(
    names: tuple[str, ...], noted: NotedEvents, notes: Small, first: FirstNumbers | None
) -> list[pa.Array[Any]]:
    """The change columns of some images.

    Args:
        names: The names of the change columns.
        noted: The events that the images belong to.
        notes: Facts about the images, as `locate` gives them.
        first: Numbers of the events' first changes and images, where `needs_numbers` says so.
    """
    return [_MAKERS[name](noted, notes, first) for name in names]


def _ops(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del noted, first
    rows = notes.shape[1]
    out: Any = np.empty(_OP_ROOM * rows + PADDING, np.uint8)
    offsets: Any = np.empty(rows + 1, np.int32)
    kernels().repeat_texts(notes[1], _OP_TEXTS, _OP_LENGTHS, _OP_ROOM, out, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(out)]
    return pa.Array.from_buffers(pa.string(), rows, buffers, 0)


def _gtids(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del first
    rows = notes.shape[1]
    owners = noted.groups[notes[0]]
    out = np.empty(int(noted.lengths.max()) * rows + PADDING, np.uint8)
    offsets = np.empty(rows + 1, np.int32)
    room = layout.GTID_TEXT_MAX
    empty = kernels().repeat_texts(owners, noted.texts, noted.lengths, room, out, offsets)
    if empty:
        owners = np.where(noted.lengths[owners] > 0, owners, np.int32(layout.NULL))
    return array(pa.string(), owners, empty > 0, offsets, out)


def _moments(noted: NotedEvents, notes: Small) -> Numbers:
    if noted.timestamp is not None:
        return np.full(notes.shape[1], noted.timestamp * _MICROSECONDS, np.int64)
    times: Numbers = noted.events[layout.EVENT_TIME].view(np.uint32)[notes[0]].astype(np.int64)
    return times * _MICROSECONDS


def _timestamps(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del first
    return filled(CHANGE_TYPES["_timestamp"], _moments(noted, notes))


def _commit_times(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del first
    moments = _moments(noted, notes)
    if noted.micros is not None:
        micros = noted.micros[noted.groups[notes[0]]]
        moments = np.where(micros > 0, micros, moments)
    return filled(CHANGE_TYPES["_ts"], moments)


def _file_names(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del first
    return _files(noted.file).slice(0, notes.shape[1])


@lru_cache(maxsize=4)
def _files(name: str) -> pa.Array[Any]:
    """A file's name as often as a batch may need it."""
    return pa.array([name] * ROWS_MAX, pa.string())


def _positions(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del first
    return filled(pa.int64(), noted.positions[notes[0]])


def _rows(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    if not noted.is_xa:
        return filled(pa.int32(), notes[2].copy())
    assert first is not None, "an XA transaction is numbered through"
    return filled(pa.int32(), (notes[2] + first.changes[notes[0]]).astype(np.int32))


def _orders(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del noted
    assert first is not None, "images are numbered before"
    return filled(pa.int64(), first.images[notes[0]] + _image_numbers(notes))


def _server_ids(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del first
    events, owners = np.unique(notes[0], return_inverse=True)
    offsets = noted.events[layout.EVENT_OFFSET, events].astype(np.int64) + _SERVER_ID_OFFSET
    ids = np.zeros(events.shape[0], np.int64)
    for place in range(4):
        ids |= noted.headers[offsets + place].astype(np.int64) << 8 * place
    return filled(pa.int64(), ids[owners])


def _sequences(noted: NotedEvents, notes: Small, first: FirstNumbers | None) -> pa.Array[Any]:
    del first
    start = file_number(noted.file) << SEQUENCE_FILE_BITS
    return filled(pa.int64(), noted.positions[notes[0]] + start)


_MAKERS: Final[Mapping[str, Callable[[NotedEvents, Small, FirstNumbers | None], pa.Array[Any]]]] = (
    MappingProxyType(
        {
            "_op": _ops,
            "_gtid": _gtids,
            "_timestamp": _timestamps,
            "_ts": _commit_times,
            "_file": _file_names,
            "_position": _positions,
            "_pos": _positions,
            "_row": _rows,
            "_txn_order": _orders,
            "_server_id": _server_ids,
            "_seq": _sequences,
        }
    )
)

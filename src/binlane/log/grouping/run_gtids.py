"""The GTIDs of many event groups at once, from the events with which they begin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from binlane.log.codec.format import HEADER_LENGTH
from binlane.log.codec.types import EventType
from binlane.log.kernels import layout
from binlane.log.kernels.load import kernels
from binlane.positions import Gtid, GtidRun, uuid_text

SEQUENCE_AT: Final = 17
"""Place of the sequence in the body of MySQL's GTID event."""

_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.int64]
_Events = npt.NDArray[np.int32]


def numbers_at(data: _Bytes, offsets: _Places, size: int) -> npt.NDArray[np.uint64]:
    """Read little-endian numbers of `size` bytes."""
    padded = np.zeros((offsets.shape[0], 8), np.uint8)
    padded[:, :size] = data[offsets[:, None] + np.arange(size)]
    return padded.view("<u8").reshape(-1)


def mariadb_gtids(data: _Bytes, offsets: _Places) -> Iterator[Gtid]:
    """Give the highest GTID of each domain.

    Args:
        data: Bytes that hold the groups.
        offsets: Places of their GTID events.
    """
    domains = numbers_at(data, offsets + HEADER_LENGTH + 8, 4)
    sequences = numbers_at(data, offsets + HEADER_LENGTH, 8)
    order = np.lexsort((sequences, domains))
    is_last = np.append(np.diff(domains[order]) != 0, True)
    for at in order[is_last]:
        server_id = numbers_at(data, offsets[at : at + 1] + 5, 4)[0]
        yield Gtid(int(domains[at]), int(server_id), int(sequences[at]))


def mysql_gtids(data: _Bytes, events: _Events, first: _Places) -> tuple[list[GtidRun], list[int]]:
    """Give the sequences of each source and tag.

    Args:
        data: Bytes that hold the groups.
        events: Index of their events, as in `kernels.layout`.
        first: Numbers of the GTID events there.

    Returns:
        The GTIDs, and the numbers of events that kernels do not read.
    """
    is_tagged = events[layout.EVENT_TYPE, first] == EventType.GTID_TAGGED_LOG
    bodies = events[layout.EVENT_OFFSET, first[~is_tagged]].astype(np.int64) + HEADER_LENGTH
    names = np.zeros((bodies.shape[0], layout.GTID_NAME_SIZE), np.uint8)
    names[:, : layout.UUID_SIZE] = data[bodies[:, None] + np.arange(1, layout.UUID_SIZE + 1)]
    sequences = numbers_at(data, bodies + SEQUENCE_AT, 8).astype(np.int64)
    unread: list[int] = []
    if is_tagged.any():
        tagged = first[is_tagged]
        its_names, its_sequences = _tagged_gtids(data, events, tagged)
        names = np.concatenate([names, its_names])
        sequences = np.concatenate([sequences, its_sequences])
        unread = tagged[its_sequences.shape[0] :].tolist()
    if names.shape[0] and (names == names[0]).all():
        # The case of nearly all runs, in a fraction of the time.
        found, owners = names[:1], np.zeros(names.shape[0], np.int64)
    else:
        found, owners = np.unique(names, axis=0, return_inverse=True)
        owners = owners.reshape(-1)
    runs = [
        GtidRun(
            uuid_text(name[: layout.UUID_SIZE].hex()),
            name[layout.UUID_SIZE + 1 :][: name[layout.UUID_SIZE]].decode("ascii"),
            _intervals(np.unique(sequences[owners == number])),
        )
        for number, name in enumerate(map(bytes, found))
    ]
    return runs, unread


def _tagged_gtids(data: _Bytes, events: _Events, tagged: _Places) -> tuple[_Bytes, _Places]:
    """Read GTIDs with tags, up to the first one that kernels do not read.

    Args:
        data: Bytes that hold the groups.
        events: Index of the events of these groups.
        tagged: Numbers of the GTID events.

    Returns:
        UUIDs with tags, as kernels write them, and sequences.
    """
    places = events[[layout.EVENT_OFFSET, layout.EVENT_END]][:, tagged].astype(np.int64)
    names = np.zeros((tagged.shape[0], layout.GTID_NAME_SIZE), np.uint8)
    sequences = np.zeros((1, tagged.shape[0]), np.int64)
    read = kernels().read_tagged
    count = read(data, np.ascontiguousarray(places), names.reshape(-1), sequences)
    return names[:count], sequences[0, :count]


def _intervals(sequences: _Places) -> tuple[tuple[int, int], ...]:
    """Give first and last of each run of neighbours among growing numbers."""
    cuts = np.flatnonzero(np.diff(sequences) != 1)
    firsts = sequences[np.concatenate([[0], cuts + 1])]
    lasts = sequences[np.concatenate([cuts, [sequences.shape[0] - 1]])]
    return tuple(zip(map(int, firsts), map(int, lasts), strict=True))

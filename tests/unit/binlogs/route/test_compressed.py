"""Compressed binlogs hold what others do, in the same files by each way, for our readers and others'."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

import binlane
from binlane.binlogs.route.job import route_files
from binlane.binlogs.store.settings import StoreSettings
from binlane.binlogs.store.verify import verify
from binlane.log.codec.types import EventType
from binlane.log.kernels.load import is_compiled
from tests.routed_files import outputs, request, routed, written

ON: Final = "COMPRESS='ON'"
_SETS: Final = {
    "md1011_load_data_row": EventType.WRITE_ROWS_COMPRESSED_V1,
    "md1011_types_string": EventType.WRITE_ROWS_COMPRESSED_V1,
    "md1011_rotation": EventType.WRITE_ROWS_COMPRESSED_V1,
    "md118_format_statement": None,
    "md1011_compressed": EventType.WRITE_ROWS_COMPRESSED_V1,
    "my97_txn": EventType.TRANSACTION_PAYLOAD,
    "my97_gtid_tagged": EventType.TRANSACTION_PAYLOAD,
    "my97_rotation": EventType.TRANSACTION_PAYLOAD,
    "my97_compressed": EventType.TRANSACTION_PAYLOAD,
}
compiled = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)


def _files(out: Path, name: str) -> list[str]:
    return sorted(map(str, (out / name).glob(f"{name}.0*")))


def _rows(files: list[str]) -> list[tuple[Any, ...]]:
    """What a reader is told of each row, but for where it stands in the files."""
    return [
        (batch.schema.metadata[b"table"], *sorted((k, str(v)) for k, v in row.items()))
        for batch in binlane.scan(files)
        for row in batch.drop_columns(["_file", "_position"]).to_pylist()
    ]


def _types(files: list[str]) -> set[int]:
    return {event.header.type_code for group in binlane.read(files) for event in group.events}


@pytest.mark.parametrize("name", _SETS)
def test_they_hold_the_same_rows(name: str, tmp_path: Path) -> None:
    paths, out = written(name, tmp_path / "in"), tmp_path / "out"
    routed(paths, out, "", ON)
    plain, made = _files(out, "b1"), _files(out, "b2")
    assert _rows(plain) == _rows(made)
    assert [group.gtid for group in binlane.read(plain) if group.gtid] == [
        group.gtid for group in binlane.read(made) if group.gtid
    ]
    kind = _SETS[name]
    assert kind is None or kind in _types(made)
    assert sum(Path(file).stat().st_size for file in made) <= sum(
        Path(file).stat().st_size for file in plain
    )
    assert [*verify([out / "b2"])] == []


@compiled
@pytest.mark.parametrize("file_bytes", [8192, 1 << 30])
@pytest.mark.parametrize("name", _SETS)
def test_both_paths_make_the_same_files(name: str, file_bytes: int, tmp_path: Path) -> None:
    paths = written(name, tmp_path / "in")
    made = []
    ways: tuple[dict[str, Any], ...] = ({"uses_kernels": False}, {}, {"window_bytes": 64})
    for number, way in enumerate(ways):
        out = tmp_path / str(number)
        routed(
            paths, out, ON, f"LOG(shop), {ON}", f"IGNORE(shop.t), {ON}",
            max_binlog_size=file_bytes, **way,
        )  # fmt: skip
        made.append(outputs(out))
    assert made[0] == made[1] == made[2]


@compiled
def test_groups_that_are_not_held(tmp_path: Path) -> None:
    for name in ("md1011_load_data_row", "my97_txn"):
        paths, held, large = (
            written(name, tmp_path / name),
            tmp_path / f"{name}-held",
            tmp_path / f"{name}-large",
        )
        routed(paths, held, ON)
        routed(paths, large, ON, window_bytes=64, held_bytes_max=200)
        # What has room in a piece is whole.
        assert outputs(held) == outputs(large)


def test_what_was_compressed_stays_where_nothing_goes(tmp_path: Path) -> None:
    for name in ("md1011_compressed", "my97_compressed"):
        paths, out = written(name, tmp_path / name), tmp_path / f"{name}-out"
        routed(paths, out, "", "COMPRESS='OFF'")
        plain, off = (
            b"".join(map(Path.read_bytes, map(Path, _files(out, b)))) for b in ("b1", "b2")
        )
        assert len(plain) == len(off)
        for group, kept in zip(
            (g for g in binlane.read(list(paths)) if g.gtid),
            (g for g in binlane.read(_files(out, "b1")) if g.gtid),
            strict=True,
        ):
            assert [event.header.type_code for event in group.events] == [
                event.header.type_code for event in kept.events
            ]


def test_a_file_with_tables_info(tmp_path: Path) -> None:
    """Statements are compressed in the form of the file; MySQL's transactions are not."""
    for name, kind in (
        ("md1011_load_data_row", EventType.WRITE_ROWS_COMPRESSED_V1),
        ("my97_txn", EventType.WRITE_ROWS),
    ):
        paths, out = written(name, tmp_path / name), tmp_path / f"{name}-out"
        route_files(request(paths, out, ON, settings=StoreSettings(has_tables_info=True)))
        assert kind in _types(_files(out, "b1"))
        assert [*verify([out / "b1"])] == []

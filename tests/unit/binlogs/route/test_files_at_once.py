"""Files that are routed at the same time make the bytes, counts, notes and record of one after another."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from binlane.binlogs.route import files_at_once, stretch
from binlane.binlogs.route.job import route_files
from binlane.binlogs.route.route_record import RECORD_FILE
from binlane.binlogs.route.route_request import RouteReport
from binlane.binlogs.route.stretch import Placement, RoutedStretch, Stretch
from binlane.binlogs.store.settings import StoreSettings
from binlane.errors import StoreError
from binlane.log.kernels.load import is_compiled
from tests.routed_files import outputs, request, written

Work = TypeVar("Work")
Result = TypeVar("Result")

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "scan")), reason="the kernels are not compiled here"
)
SCOPES = (
    *("LOG ALL", "LOG(shop.t)", "IGNORE(shop.t)", "LOG(crm)", "LOG(shop)", "LOG(shop.a)"),
    *("LOG ALL, ROW_IMAGE=MINIMAL", "LOG(shop), ROW_IMAGE=NOBLOB"),
)
SETS = (
    *("md1011_txn", "md1011_xa", "md1011_ddl", "md1011_format_mixed", "md118_txn"),
    *("my97_txn", "my97_compressed", "my97_xa", "my97_ddl"),
)


def _writes(work: object) -> bool:
    return isinstance(work, Placement) or (isinstance(work, Stretch) and work.is_written)


class Here:
    """An engine in this process, whose works and results are pickled as those of others are.

    Attributes:
        works: The works that it did.
    """

    cores = 3

    def __init__(self, change: Callable[[RoutedStretch], RoutedStretch] | None = None) -> None:
        self.works: list[Stretch | Placement] = []
        self._change = change

    def run(self, function: Callable[[Work], Result], works: Sequence[Work]) -> Iterator[Result]:
        for work in works:
            assert isinstance(work, Stretch | Placement)
            self.works.append(work)
            result = function(pickle.loads(pickle.dumps(work)))
            if self._change and isinstance(result, RoutedStretch) and not _writes(work):
                result = self._change(result)  # type: ignore[assignment]  # it is what it was
            yield pickle.loads(pickle.dumps(result))

    @property
    def written(self) -> int:
        """Number of files that were written by the engine."""
        return sum(map(_writes, self.works))


def small_files(name: str, directory: Path) -> tuple[str, ...]:
    """The log of a fixture set, in files of 4 kB."""
    paths = written(name, directory / "whole")
    settings = StoreSettings(max_binlog_size_bytes=4096)
    route_files(request(paths, directory / "cut", "LOG ALL", settings=settings))
    cut = sorted((directory / "cut" / "b1").iterdir())
    return tuple(str(path) for path in cut if path.suffix != ".index")


def results(out: Path, report: RouteReport) -> tuple[object, ...]:
    record = (out / RECORD_FILE).read_text()
    return outputs(out), record, report.counts, report.notes, report.files, str(report.fault)


def run(
    paths: Sequence[str], out: Path, size: int, engine: Here | None = None
) -> tuple[object, ...]:
    settings = StoreSettings(max_binlog_size_bytes=size)
    asked = request(tuple(paths), out, *SCOPES, settings=settings)
    return results(out, route_files(asked, engine=engine))


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("size", [4096, 1 << 30])
@pytest.mark.parametrize("keeps", [0, 1 << 20])
def test_the_results_are_those_of_one_process(
    name: str, size: int, keeps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_at_once, "POINT_BYTES", 500)
    monkeypatch.setattr(stretch, "KEPT_SHARE", keeps)
    paths = small_files(name, tmp_path)
    engine = Here()
    assert run(paths, tmp_path / "at once", size, engine) == run(paths, tmp_path / "one", size)
    is_placed = any(isinstance(work, Placement) for work in engine.works)
    assert is_placed == bool(keeps) or size == 4096
    assert engine.written > 1


def test_a_prediction_that_fails_costs_no_byte(tmp_path: Path) -> None:
    def wrong(routed: RoutedStretch) -> RoutedStretch:
        end = routed.points[-1]
        states = {name: replace(state, end=state.end + 7) for name, state in end.binlogs.items()}
        return replace(routed, points=(*routed.points[:-1], replace(end, binlogs=states)))

    paths = small_files("md1011_format_mixed", tmp_path)
    engine = Here(wrong)
    expected = run(paths, tmp_path / "one", 1 << 30)
    assert run(paths, tmp_path / "at once", 1 << 30, engine) == expected
    assert engine.written


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_damage_ends_the_run_where_it_ends_one_process(damaged: int, tmp_path: Path) -> None:
    paths = small_files("md1011_format_mixed", tmp_path)
    data = bytearray(Path(paths[damaged]).read_bytes())
    data[-60] ^= 1
    Path(paths[damaged]).write_bytes(data)
    assert run(paths, tmp_path / "at once", 4096, Here()) == run(paths, tmp_path / "one", 4096)


def test_a_later_run_goes_on(tmp_path: Path) -> None:
    paths = small_files("md1011_format_mixed", tmp_path)
    expected, *_ = run(paths, tmp_path / "one", 4096)
    for count in range(1, len(paths)):
        out = tmp_path / f"out{count}"
        run(paths[:count], out, 4096, Here())
        made, *_ = run(paths, out, 4096, Here())
        assert made == expected


def test_a_run_that_died_is_gone_on_with(tmp_path: Path) -> None:
    class Dying(Here):
        def run(
            self, function: Callable[[Work], Result], works: Sequence[Work]
        ) -> Iterator[Result]:
            yield from super().run(function, works)
            if _writes(works[0]):
                raise StoreError("it died", path="here", hint="none")

    paths = small_files("md1011_format_mixed", tmp_path)
    expected, *_ = run(paths, tmp_path / "one", 4096)
    with pytest.raises(StoreError):
        run(paths, tmp_path / "out", 4096, Dying())
    made, *_ = run(paths, tmp_path / "out", 4096, Here())
    assert made == expected


def test_an_error_of_a_worker_names_file_and_position(tmp_path: Path) -> None:
    class Gone(Here):
        def run(
            self, function: Callable[[Work], Result], works: Sequence[Work]
        ) -> Iterator[Result]:
            if _writes(works[0]):
                Path(paths[1]).unlink()
            return super().run(function, works)

    paths = small_files("md1011_format_mixed", tmp_path)
    with pytest.raises(StoreError, match=Path(paths[1]).name) as raised:
        run(paths, tmp_path / "out", 4096, Gone())
    assert raised.value.__notes__ == [f"while {paths[1]}:0 was routed"]

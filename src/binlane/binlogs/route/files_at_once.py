"""Several source files routed at the same time, into the bytes that one file after another gives.

The bytes of a group in a binlog depend on the files before: on its position in the binlog's file,
on the size at which another file begins, on MySQL's logical timestamps, on the memory of routing.
So the files are measured first, at the same time, from the states that are known so far. Then the
states between the files are chained: memories by the groups on which they depend, sizes by
addition, and where a binlog's file ends, by measuring the few megabytes around its end again. From
there the files are written at the same time, each to its place.

Each prediction is compared with the state that writing reached. Whatever is not as predicted is
thrown away, and routed by the caller, one file after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import Final, Protocol, TypeVar

from binlane.binlogs.route.route_request import RouteRequest
from binlane.binlogs.route.schedule import Schedule
from binlane.binlogs.route.source_files import SourceFile
from binlane.binlogs.route.stretch import (
    KEPT_SHARE,
    Decisive,
    Placement,
    RoutedStretch,
    Stretch,
    StretchPoint,
    route_stretch,
    write,
)
from binlane.binlogs.route.writers_lock import owner_of
from binlane.binlogs.routing.event_routing import route
from binlane.binlogs.routing.routed_group import prepared_with
from binlane.binlogs.routing.routing_memory import Memory
from binlane.binlogs.store.files import stored_format
from binlane.binlogs.store.recovery import RecoveredBinlog
from binlane.log.codec.format import Format
from binlane.statements.scope.definition import Definition

Work = TypeVar("Work")
Result = TypeVar("Result")

POINT_BYTES: Final = 16 << 20
"""Bytes of a source file between two points that measuring notes."""

_FILES_PER_CORE: Final = 3
_numbers = count(1)


class FileEngine(Protocol):
    """Runs a function over works, in processes that reach the same files."""

    def run(self, function: Callable[[Work], Result], works: Sequence[Work]) -> Iterator[Result]:
        """Run a function over works; give the results in the order of the works.

        Raises:
            BinlaneError: The first error that the function raises, in the order of the works.
        """

    @property
    def cores(self) -> int:
        """The number of works that run at the same time."""


class FilesAtOnce:
    """Routes the next files of a run by an engine.

    Args:
        request: Request of the run, with its settings.
        engine: Engine that runs the works of a batch.
    """

    def __init__(self, request: RouteRequest, engine: FileEngine) -> None:
        # Works travel to other processes: they need neither the other paths nor the definitions.
        self._request = replace(request, paths=(), schedule=Schedule(()), load_schema=None)
        self._engine = engine
        self._keeps = True

    def batch(self, files: Sequence[SourceFile]) -> Sequence[SourceFile]:
        """The first of some files, as many as can be routed at the same time; the others later.

        A file that begins as after a restart of its server, or with another layout of events, lets
        each binlog begin a file; it is the first of its batch, whose state is known.
        """
        first, number = files[0].description, 1
        for file in files[1 : _FILES_PER_CORE * self._engine.cores]:
            described = file.description
            is_same = replace(described, created=first.created) == first
            if not is_same or described.created not in {0, first.created}:
                break
            number += 1
        encrypted = [each for each in range(number) if files[each].is_encrypted]
        return files[: min([number, *encrypted])]

    def route(
        self, files: Sequence[SourceFile], start: StretchPoint, definitions: Sequence[Definition]
    ) -> list[RoutedStretch]:
        """Route the files of a batch into the binlogs' files.

        Args:
            files: The files, as `batch` gives them.
            start: State before the first file.
            definitions: Definitions of the binlogs in `start`.

        Returns:
            The outcome of the first files; of fewer than there are where a prediction failed.

        Raises:
            StoreError: If files cannot be used. The target is behind `start`, whatever was written.
        """
        chain = _Chain(self._request, self._engine, tuple(definitions), keeps=self._keeps)
        legs = chain.legs(files, start)
        outcomes = [None, *self._engine.run(write, [leg.work for leg in legs[1:]])]
        good: list[RoutedStretch] = []
        for number, (leg, outcome) in enumerate(zip(legs, outcomes, strict=False)):
            routed = leg.outcome if outcome is None else outcome
            if routed.report.fault is not None:
                break
            good.append(routed)
            following = legs[number + 1 : number + 2]
            if following and _behind_gap(routed.end, files[number + 1]) != following[0].start:
                break
        if legs:
            self._keeps = legs[-1].is_small
        return good


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leg:
    """A file on its way: measured, and with the states before and behind it.

    Attributes:
        measured: The outcome of measuring, maybe from a guess; the first file of a batch, whose
            state is known, is written at once.
        start: State of the binlogs before the file.
        end: State of the binlogs behind the file.
        stretch: The file as a stretch to be written.
    """

    measured: RoutedStretch
    start: StretchPoint
    end: StretchPoint
    stretch: Stretch

    @property
    def is_small(self) -> bool:
        """True if measuring can keep the bytes that a file like this one gives."""
        states = self.start.binlogs
        made = sum(state.end - states[name].end for name, state in self.end.binlogs.items())
        return made <= self.stretch.size_bytes * KEPT_SHARE

    @property
    def work(self) -> Stretch | Placement:
        """The writing of the file: by its kept bytes if no binlog's file ends in it."""
        kept, guess = self.measured.kept, self.measured.points[0].binlogs
        states, ends = self.start.binlogs, self.end.binlogs
        if kept is None or any(ends[name].files != state.files for name, state in states.items()):
            return self.stretch
        clocks = {name: state.clock - guess[name].clock for name, state in states.items()}
        return Placement(stretch=self.stretch, kept=kept, clocks=clocks)

    @property
    def outcome(self) -> RoutedStretch:
        """The outcome where kept bytes were placed."""
        return replace(self.measured, points=(self.start, self.end), decisive=None)


class _Chain:
    """The states between files that follow each other."""

    def __init__(
        self,
        request: RouteRequest,
        engine: FileEngine,
        definitions: tuple[Definition, ...],
        *,
        keeps: bool,
    ) -> None:
        self._request = request
        self._engine = engine
        self._definitions = definitions
        # What is compressed may depend on its place.
        self._keeps = keeps and not any(each.is_compressed for each in definitions)

    def stretch(
        self,
        file: SourceFile,
        start: StretchPoint,
        *,
        is_written: bool = False,
    ) -> Stretch:
        """A whole file as a stretch."""
        return Stretch(
            request=self._request,
            file=file,
            start=start,
            definitions=self._definitions,
            owner=owner_of(self._request.out) if is_written else "",
            point_bytes=POINT_BYTES,
        )

    def legs(self, files: Sequence[SourceFile], start: StretchPoint) -> list[_Leg]:
        """Measure some files, and chain the states between them.

        Returns:
            A leg for each file, up to a file that is damaged or that leads to an unknown state.
        """
        guesses = [start, *(self._guess(file, files[0], start) for file in files[1:])]
        measured = self._measured(files, guesses)
        memories = [_Memories.of(start)]
        for file, each in zip(files, measured, strict=True):
            if each.report.fault is not None or each.decisive is None:
                break
            memories.append(memories[-1].behind(each, self._definitions, file.description.format))
        known = len(memories)
        wrong = [
            number
            for number in range(1, min(known, len(files)))
            if memories[number] != _Memories.of(guesses[number])
        ]
        for number in wrong:
            guesses[number] = memories[number].put_into(guesses[number])
        again = self._measured([files[n] for n in wrong], [guesses[n] for n in wrong])
        for number, each in zip(wrong, again, strict=True):
            measured[number] = each
        legs: list[_Leg] = []
        for file, each in zip(files[:known], measured, strict=False):
            if each.report.fault is not None:
                break
            before = _behind_gap(legs[-1].end, file) if legs else start
            legs.append(
                _Leg(
                    measured=each,
                    start=before,
                    end=self._end(file, each, before),
                    stretch=self.stretch(file, before, is_written=True),
                )
            )
        return legs

    def _measured(
        self, files: Sequence[SourceFile], starts: Sequence[StretchPoint]
    ) -> list[RoutedStretch]:
        """The outcome of measuring files; one from a state that is no guess is written at once."""
        works = [
            replace(self.stretch(file, start), keeps_as=f"part{next(_numbers)}")
            if start.is_guess and self._keeps
            else self.stretch(file, start, is_written=not start.is_guess)
            for file, start in zip(files, starts, strict=True)
        ]
        return list(self._engine.run(route_stretch, works))

    def _guess(self, file: SourceFile, first: SourceFile, start: StretchPoint) -> StretchPoint:
        """A state before a later file whose memory is that of the first: its sizes count from 0."""
        done = start.done.union(file.done)
        described = stored_format(
            first.description, has_tables_info=self._request.settings.has_tables_info
        )
        return StretchPoint(
            position=0,
            done=done,
            is_guess=True,
            binlogs={
                name: replace(
                    state,
                    head=replace(state.head, format_description=described),
                    end=state.head.size_bytes,
                    position=done,
                    clock=0,
                    clock_base=0,
                    source_created=first.description.created or state.source_created,
                )
                for name, state in start.binlogs.items()
            },
        )

    def _end(self, file: SourceFile, measured: RoutedStretch, start: StretchPoint) -> StretchPoint:
        """The state behind a file that was measured from a guess, when it begins with a state."""
        if not measured.points[0].is_guess:
            return measured.end
        return StretchPoint(
            position=measured.end.position,
            done=start.done.union(measured.end.done),
            binlogs={
                definition.name: self._end_of(definition, file, measured.points, start)
                for definition in self._definitions
            },
        )

    def _end_of(
        self,
        definition: Definition,
        file: SourceFile,
        points: Sequence[StretchPoint],
        start: StretchPoint,
    ) -> RecoveredBinlog:
        """The state of one binlog behind a file."""
        name, size_max = definition.name, self._request.settings.max_binlog_size_bytes
        state = start.binlogs[name]
        shift = state.clock - points[0].binlogs[name].clock
        for before, after in pairwise(points):
            first, last = before.binlogs[name], after.binlogs[name]
            done = start.done.union(after.done)
            if state.end + last.end - first.end > size_max:
                place = StretchPoint(
                    position=before.position,
                    done=start.done.union(before.done),
                    binlogs={name: state},
                )
                state = self._measured_again(definition, file, place, after.position)
            else:
                state = replace(
                    last,
                    files=state.files,
                    head=state.head,
                    end=state.end + last.end - first.end,
                    position=done,
                    clock=last.clock + shift,
                    clock_base=(last.clock_base or 0) + shift,
                )
        return state

    def _measured_again(
        self, definition: Definition, file: SourceFile, start: StretchPoint, stop: int
    ) -> RecoveredBinlog:
        """The state of one binlog behind a stretch in which its file may end."""
        stretch = Stretch(
            request=self._request,
            file=file,
            start=start,
            stop=stop,
            definitions=(definition,),
            point_bytes=POINT_BYTES,
        )
        return route_stretch(stretch).end.binlogs[definition.name]


@dataclass(frozen=True, slots=True)
class _Memories:
    """The part of the binlogs' states that groups decide: memory and prepared XA transactions."""

    of_binlogs: Mapping[str, tuple[str, frozenset[str]]]

    @classmethod
    def of(cls, point: StretchPoint) -> _Memories:
        return cls({name: (state.memory, state.prepared) for name, state in point.binlogs.items()})

    def put_into(self, point: StretchPoint) -> StretchPoint:
        """A state with these memories in the place of its own."""
        return replace(
            point,
            binlogs={
                name: replace(state, memory=memory, prepared=prepared)
                for name, state in point.binlogs.items()
                for memory, prepared in [self.of_binlogs[name]]
            },
        )

    def behind(
        self, measured: RoutedStretch, definitions: Sequence[Definition], format_: Format
    ) -> _Memories:
        """The memories behind a file that was measured, maybe from others."""
        if self == _Memories.of(measured.points[0]):
            return _Memories.of(measured.end)
        assert measured.decisive is not None, "the caller saw to it"
        return _Memories(
            {
                each.name: _behind(measured.decisive, each, format_, *self.of_binlogs[each.name])
                for each in definitions
            }
        )


def _behind(
    groups: Sequence[Decisive],
    definition: Definition,
    format_: Format,
    memory_text: str,
    prepared: frozenset[str],
) -> tuple[str, frozenset[str]]:
    """The memory of one binlog behind the groups on which it depends."""
    memory = Memory.decode(memory_text)
    for tables, group in groups:
        memory = memory.with_rows(set(map(definition.scope.key, tables)))
        if group is not None:
            routing = route(group, definition, format_, prepared, memory)
            memory = memory if routing.memory is None else routing.memory
            prepared = prepared_with(prepared, routing.group)
    return memory.encode(), prepared


def _behind_gap(end: StretchPoint, file: SourceFile) -> StretchPoint:
    """The state behind a file as the next file finds it, which may tell of more that is done."""
    done = end.done.union(file.done)
    return StretchPoint(
        position=0,
        done=done,
        binlogs={name: replace(state, position=end.done) for name, state in end.binlogs.items()},
    )

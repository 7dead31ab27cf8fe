"""Ways of a program: where only data tells how it goes on, each way is followed once.

A statement is run again from its beginning for each way, with the decisions to be made on that way. Two ways
that come to the same place of the same programs in the same state go on alike, so that only the first one is
followed from there. Findings between one decision and the next are kept by decision: so the findings that all
ways have in common can be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

Found: TypeAlias = "Counter[tuple[Hashable, ...]]"

WAYS_MAX: Final = 400
"""More ways of one statement are not followed."""
_SAME_MAX: Final = 1000
"""Times that a decision that is not explored any more is made in the same way."""


class AlreadyFollowed(Exception):  # noqa: N818  # nothing is wrong: it ends a way
    """From here on the way is one that was followed before."""


class Undecided(Exception):  # noqa: N818  # caught where a value is wanted
    """A value depends on data."""


@dataclass(frozen=True, slots=True)
class DataCondition:
    """A condition or value that depends on data.

    Attributes:
        text: Text of the condition as it stands in the program.
        program: Program with the condition, as `procedure d.p`; empty for the client's statement itself.
        offset: Position in the program's body, or in the statement.
    """

    text: str
    program: str = ""
    offset: int = 0


class ProgramActivity(Protocol):
    """A program that runs, or a statement that is followed row by row."""

    def place(self) -> object:
        """Return the activity's position in its text."""

    def state(self) -> object:
        """Return the state that the activity's rest depends on, its place included."""


@dataclass(slots=True)
class _Stretch:
    """The part of a way from one decision to the next.

    Attributes:
        found: Findings on this part of the way.
        end: The next decision; None at the end of the statement.
        is_followed: The part was followed to its end.
    """

    found: Found = field(default_factory=Counter)
    end: _Decision | None = None
    is_followed: bool = False


@dataclass(slots=True, eq=False)
class _Decision:
    """A place where data decides, in one state of all programs."""

    condition: DataCondition
    stretches: dict[int, _Stretch] = field(default_factory=dict)


class SinglePath:
    """A stand-in for `Paths` where a value alone is wanted: conditions that depend on data have no value."""

    def __init__(self) -> None:
        self.activities: list[ProgramActivity] = []
        self.made = self.fresh = self.repeats = 0

    def choose(self, condition: DataCondition, count: int = 2, *, usual: int = 0) -> int:
        """Decide nothing.

        Raises:
            Undecided: Always.
        """
        del count, usual
        raise Undecided(condition.text)

    def passes(self, *what: Hashable) -> None:
        """Note nothing."""

    def changes_objects(self, statement: str) -> None:
        """Note nothing."""


class Paths:
    """The ways of one statement of the client.

    Attributes:
        activities: The programs that run now, the outermost first.
        made: Number of decisions that the way took so far.
        fresh: Number of those decisions that were not taken before on this way.
        repeats: Greater than 0 where decisions are made, but not explored: the rest is like what was explored
            before.
    """

    def __init__(self, found: Callable[[], Found], state: Callable[[], object]) -> None:
        """Begin.

        Args:
            found: Gives all findings of the way so far.
            state: Gives all state that the rest of the way depends on, programs left out.
        """
        self._found = found
        self._state = state
        self._decisions: dict[str, _Decision] = {}
        self._waiting: list[tuple[int, ...]] = []
        self._root = _Stretch()
        self.followed = 1
        self._begin((), is_first=True)

    @property
    def is_complete(self) -> bool:
        """True if no way is left."""
        return not self._waiting

    @property
    def waiting_for(self) -> DataCondition:
        """A condition whose ways were not all followed."""
        return next(
            decision.condition
            for decision in self._decisions.values()
            if any(not each.is_followed for each in decision.stretches.values())
        )

    def each(self) -> Iterator[None]:
        """Begin one way after the other, at most `WAYS_MAX`; to be told of each one's `end`."""
        yield
        while self._waiting and self.followed < WAYS_MAX:
            self.followed += 1
            self._begin(self._waiting.pop())
            yield

    def again(self) -> None:
        """Follow the same way once more."""
        self._begin(tuple(self._taken), is_first=self._is_first)

    def _begin(self, given: tuple[int, ...], *, is_first: bool = False) -> None:
        self._given, self._is_first = given, is_first
        self._taken: list[int] = []
        self._seen: dict[str, set[int]] = {}
        self._times: Counter[str] = Counter()
        self._stretch = self._root
        self._known: Found = Counter()
        self._passed: Found = Counter()
        self._ddl: list[str] = []
        self.activities: list[ProgramActivity] = []
        self.made = self.fresh = self.repeats = 0

    def end(self) -> None:
        """End the way, which was followed to the end of the statement."""
        self._close(None)

    def passes(self, *what: Hashable) -> None:
        """Note an action on the way."""
        self._passed[what] += 1

    def changes_objects(self, statement: str) -> None:
        """Note a statement that changes tables or other objects, on which all later statements depend."""
        self._ddl.append(statement)

    def _close(self, end: _Decision | None) -> None:
        found, stretch = self._found() + self._passed, self._stretch
        stretch.found, stretch.end, stretch.is_followed = found - self._known, end, True
        self._known = found

    def choose(self, condition: DataCondition, count: int = 2, *, usual: int = 0) -> int:
        """Make a decision that on a server depends on data.

        Args:
            condition: The condition that depends on data.
            count: Number of ways from this decision.
            usual: Number of the way that comes first, from 0.

        Raises:
            AlreadyFollowed: If another way came here in the same state.
        """
        self.made += 1
        if self.repeats:
            place = repr([each.place() for each in self.activities])
            self._times[place] += 1
            times = self._times[place]
            return usual if times < _SAME_MAX else times % count
        activities = [each.state() for each in self.activities]
        key = repr((self._state(), self._ddl, activities, condition, count))
        decision = self._decisions.get(key)
        is_new = decision is None
        if decision is None:
            decision = self._decisions[key] = _Decision(condition)
            decision.stretches = {number: _Stretch() for number in range(count)}
        self._close(decision)
        seen = self._seen.setdefault(key, set())
        if len(self._taken) < len(self._given):
            number = self._given[len(self._taken)] % count
        elif is_new:
            number = usual
            others = [each for each in range(count) if each != usual]
            self._waiting += [(*self._taken, each) for each in reversed(others)]
        elif not self._is_first or not seen:
            raise AlreadyFollowed
        else:
            left = [each for each in range(count) if each not in seen]
            number = usual if usual in left or not left else left[0]
        self.fresh += number not in seen
        self._taken.append(number)
        seen.add(number)
        self._stretch = decision.stretches[number]
        return number

    # Findings common to the ways ----------------------------------------------------------------

    def common(self) -> frozenset[tuple[Hashable, ...]]:
        """Return the findings that every way has."""
        known: dict[_Decision, frozenset[tuple[Hashable, ...]] | None] = dict.fromkeys(
            self._decisions.values()
        )

        def behind(stretch: _Stretch) -> frozenset[tuple[Hashable, ...]] | None:
            found = frozenset(stretch.found)
            if stretch.end is None:
                return found
            rest = known[stretch.end]
            return None if rest is None else found | rest

        is_stable = False
        while not is_stable:
            is_stable = True
            for decision, before in known.items():
                sets = [
                    each for each in map(behind, decision.stretches.values()) if each is not None
                ]
                now = frozenset.intersection(*sets) if sets else None
                if now != before:
                    known[decision], is_stable = now, False
        return behind(self._root) or frozenset()

    def conditions(self) -> tuple[DataCondition, ...]:
        """Return the conditions that make a difference, in the order in which they were met."""
        found: dict[DataCondition, None] = {}
        for decision in self._decisions.values():
            first, *others = decision.stretches.values()
            if any(each.found != first.found for each in others) or any(
                _reached(each) != _reached(first) for each in others
            ):
                found[decision.condition] = None
        return tuple(found)


def _reached(stretch: _Stretch) -> frozenset[tuple[Hashable, ...]]:
    """Return the findings on a stretch and behind it."""
    found: set[tuple[Hashable, ...]] = set()
    waiting, seen = [stretch], {id(stretch)}
    while waiting:
        each = waiting.pop()
        found.update(each.found)
        if each.end is not None:
            for following in each.end.stretches.values():
                if id(following) not in seen:
                    seen.add(id(following))
                    waiting.append(following)
    return frozenset(found)

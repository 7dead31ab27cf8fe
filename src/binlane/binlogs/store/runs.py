"""A run of event groups as bytes → what a binlog gets of it, appended to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from binlane.binlogs.routing.spans import SpanRouter
from binlane.binlogs.store.binlog import Binlog
from binlane.log.grouping.raw import RawRun
from binlane.positions import Position


def append_run(  # noqa: PLR0913  # who gets what, and who else may have to do it
    binlog: Binlog,
    router: SpanRouter,
    number: int,
    run: RawRun,
    *,
    first: int = 0,
    after: Position,
    by_reference: Callable[[int], None],
    taken: Sequence[int] = (),
) -> None:
    """Give a binlog its part of a run, to be published by its next `sync`.

    Args:
        binlog: The binlog that is written.
        router: The router that has read the run.
        number: Number of the binlog in the router.
        run: The groups of the source.
        first: Number of the first group that the binlog does not have.
        after: The position of the source behind the run.
        by_reference: Called with the number of each group that `router` was not made for; appends
            it.
        taken: Numbers of further groups that `by_reference` is to append, in order.

    Raises:
        StoreError: As `Binlog.append`.
    """
    following = passed = told = first
    left = deque(one for one in taken if one >= first)
    while following < run.count:
        stop = left[0] if left else run.count
        if following == stop:
            if passed < following:
                # If this fails, the groups appended before it must not come again.
                binlog.advance_to(run.position_after(binlog.reached, following, start=told))
                told = following
            by_reference(left.popleft())
            following += 1
            passed = following
            continue
        router.know(number, binlog.memory, has_tables_info=binlog.has_tables_info)
        kept = router.counts(number).groups
        spans = router.select(
            run,
            number,
            first=following,
            stop=stop,
            position=binlog.size_bytes,
            room=binlog.room_bytes,
            clock_base=binlog.clock_base,
        )
        tables = binlog.memory.empty_tables
        if tables := router.mapped(run, following, spans.next_group, tables):
            binlog.remember(binlog.memory.with_rows(tables))
        if spans.data:
            groups = router.counts(number).groups - kept
            cut = binlog.cut_placed(spans.data)
            binlog.append_placed(cut, groups=groups, clock=spans.clock)
        following = spans.next_group
        if following < run.count and not binlog.room_bytes:
            # The next file says what was done before it.
            binlog.advance_to(run.position_after(binlog.reached, following, start=told))
            told = following
        if spans.needs_reference:
            # If this fails, the groups appended before it must not come again.
            binlog.advance_to(run.position_after(binlog.reached, following, start=told))
            told = following  # one that leaves nothing in the binlog does not advance it
            by_reference(following)
            following += 1
            passed = following
        elif spans.needs_file and not binlog.room_bytes:
            binlog.rotate(run.timestamp(following))
    binlog.advance_to(after)

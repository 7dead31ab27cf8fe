"""Texts that a kernel finds in the bytes of plans, and what it leaves to the reference."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlogs.routing.planned_spans import PlannedForms, PlanReader, RunPlans
from binlane.binlogs.routing.run_groups import RunGroups
from binlane.binlogs.store.binlog import Binlog
from binlane.log.codec.types import EventType
from binlane.log.grouping.raw import RawRun
from binlane.log.kernels.load import is_compiled
from binlane.names import TableName
from binlane.statements.session.group_plan import EncodedEvent, Generated, GroupPlan, TextPart
from binlane.statements.session.plan_bytes import EncodedPlan, EncodedPlans
from tests.unit.live.loop.test_substitution import Source, plan_of, running
from tests.unit.live.service.test_runs import items_of

pytestmark = pytest.mark.skipif(
    not is_compiled(("copying", "planned_texts")), reason="the kernels are not compiled here"
)

_CHANGES = 400


@pytest.fixture
def planned(tmp_path: Path) -> Iterator[tuple[RunGroups, Binlog, dict[int, GroupPlan]]]:
    """A run, a binlog of statements, and the plans of the run's groups."""
    source = Source.of("md1011_txn", tmp_path, sessions=1)
    with running(tmp_path / "data") as run:
        items = items_of((str(source.path),), 1 << 20, 1 << 26)
        (kept,) = [one.kept(0) for one in items if isinstance(one, RawRun)]
        plans = {
            number: plan
            for number, group in enumerate(source.groups)
            if (plan := plan_of(group, source.format, run.outputs)) is not None
        }
        yield RunGroups(kept), run.outputs[0].binlog, plans


def forms_of(groups: RunGroups, binlog: Binlog, plans: dict[int, EncodedPlans]) -> PlannedForms:
    known = {number: EncodedPlan(one, 0) for number, one in plans.items()}
    return PlanReader().read(groups, RunPlans(known)).forms_in(binlog, sorted(plans))


def test_texts_are_found_in_the_bytes_of_plans(
    planned: tuple[RunGroups, Binlog, dict[int, GroupPlan]],
) -> None:
    groups, binlog, plans = planned
    forms = forms_of(groups, binlog, {one: EncodedPlans.of([plan]) for one, plan in plans.items()})
    plain = [number for number in plans if groups.pieces(number)]
    assert len(plain) > 5
    assert list(filter(forms.is_text, plans)) == plain
    assert set(forms.stops) == plans.keys() - set(plain)


def test_a_plan_among_those_of_its_statement_is_found(
    planned: tuple[RunGroups, Binlog, dict[int, GroupPlan]],
) -> None:
    groups, binlog, plans = planned
    numbers = [number for number in plans if groups.pieces(number)]
    all_ = EncodedPlans.of([plans[number] for number in numbers])
    known = {number: EncodedPlan(all_, place) for place, number in enumerate(numbers)}
    forms = PlanReader().read(groups, RunPlans(known)).forms_in(binlog, numbers)
    assert not forms.stops
    other = {numbers[0]: EncodedPlan(all_, 0), numbers[1]: EncodedPlan(all_, 0)}
    forms = PlanReader().read(groups, RunPlans(other)).forms_in(binlog, numbers[:2])
    is_same = plans[numbers[0]].sections == plans[numbers[1]].sections
    assert forms.is_text(numbers[1]) is is_same


def test_a_plan_that_is_cut_off_is_for_the_reference(
    planned: tuple[RunGroups, Binlog, dict[int, GroupPlan]],
) -> None:
    groups, binlog, plans = planned
    number = max(filter(groups.pieces, plans), key=lambda one: len(plans[one].sections))
    plan = plans[number]
    encoded = EncodedPlans.of([plan]).encoded
    for length in range(len(encoded)):
        forms = forms_of(groups, binlog, {number: EncodedPlans(encoded[:length], 1)})
        assert forms.stops == [number]


def test_any_bytes_are_a_plan_or_for_the_reference(
    planned: tuple[RunGroups, Binlog, dict[int, GroupPlan]],
) -> None:
    groups, binlog, plans = planned
    chance, plain = random.Random(92), list(filter(groups.pieces, plans))
    for _ in range(_CHANGES):
        number = chance.choice(plain)
        encoded = bytearray(EncodedPlans.of([_with_id(plans[number], 0)]).encoded)
        for _ in range(chance.choice((1, 1, 2, 9))):
            encoded[chance.randrange(len(encoded))] = chance.choice((0, 1, 127, 255))
        plan = EncodedPlan(EncodedPlans(bytes(encoded), 1), 0)
        forms = PlanReader().read(groups, RunPlans({number: plan}))
        assert set(forms.forms_in(binlog, [number]).stops) <= {number}


def test_a_value_beyond_the_numbers_of_the_kernel_is_for_the_reference(
    planned: tuple[RunGroups, Binlog, dict[int, GroupPlan]],
) -> None:
    groups, binlog, plans = planned
    number = next(filter(groups.pieces, plans))
    plan = plans[number]
    assert not forms_of(groups, binlog, {number: EncodedPlans.of([plan])}).stops
    beyond = EncodedPlans.of([_with_id(plan, 0xFFFF_FFFF_FFFF_FFF0)])
    assert forms_of(groups, binlog, {number: beyond}).stops == [number]


@pytest.mark.parametrize(
    ("status", "is_plain"),
    [
        (b"", True),
        (b"\x00\x00\x00\xa0\x45\x01" + bytes(8), True),
        (b"\x06\x03std\x04\xff\x00\xff\x00\xff\x00\x0c\x01bench\x00\x12\xff\x00\x15\x00", True),
        (b"\x05\x06SYSTEM\x07\x00\x00\x08\x00\x00\x09" + bytes(8) + b"\x0d\x11\x11\x11", True),
        (b"\x0c\xfe\x10\x01\x13\x00\x14\x00\x80\x01\x02\x03", True),
        (b"\x0c\x02a\x00b\x00\x03\x01\x00\x01\x00", True),
        (b"\x0c\x02a\x00b", False),
        (b"\x12\xff", False),
        (b"\x63\x00", False),
    ],
)
def test_status_variables_say_how_values_grow(
    planned: tuple[RunGroups, Binlog, dict[int, GroupPlan]], status: bytes, *, is_plain: bool
) -> None:
    groups, binlog, plans = planned
    number = next(filter(groups.pieces, plans))
    plan = _with_status(_with_id(plans[number], 0), status)
    assert (forms_of(groups, binlog, {number: EncodedPlans.of([plan])}).stops == []) is is_plain


def _with_status(plan: GroupPlan, status: bytes) -> GroupPlan:
    """A plan whose first statement has other status variables."""
    binlogs = {}
    for name, (first, *others) in plan.binlogs.items():
        assert isinstance(first, TextPart)
        *before, query = first.events
        length = int.from_bytes(query.body[11:13], "little")
        size = len(status).to_bytes(2, "little")
        body = query.body[:11] + size + status + query.body[13 + length :]
        binlogs[name] = (first._replace(events=(*before, query._replace(body=body))), *others)
    return replace(plan, binlogs=binlogs)


def _with_id(plan: GroupPlan, value: int) -> GroupPlan:
    """A plan whose first statement has the server choose the values of its table's first column."""
    intvar = EncodedEvent(EventType.INTVAR, b"\x02" + value.to_bytes(8, "little"))
    binlogs = {}
    for name, (first, *others) in plan.binlogs.items():
        assert isinstance(first, TextPart)
        table: TableName = plan.sections[0][0].tables[0]
        part = first._replace(events=(intvar, *first.events), generated=Generated(table, 0))
        binlogs[name] = (part, *others)
    return replace(plan, binlogs=binlogs)

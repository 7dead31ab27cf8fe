"""The table of a session's phases."""

from __future__ import annotations

import pytest

from binlane.live.gateway.phase import DEAF, TRANSITIONS, Phase, PhaseEvent


def test_each_phase_has_its_ways() -> None:
    assert TRANSITIONS.keys() == set(Phase)
    reached = {phase for ways in TRANSITIONS.values() for phase in ways.values()}
    assert reached == set(Phase) - {Phase.LOGIN}
    assert {event for ways in TRANSITIONS.values() for event in ways} == set(PhaseEvent)


@pytest.mark.parametrize("phase", set(Phase) - {Phase.LOGIN})
def test_a_source_may_owe_nothing_in_any_phase(phase: Phase) -> None:
    behind = TRANSITIONS[phase][PhaseEvent.SETTLED]
    is_under_way = phase in {Phase.PREPARING, Phase.RUNNING}
    assert behind is (Phase.READY if is_under_way else phase)


@pytest.mark.parametrize("phase", set(Phase) - {Phase.DUMPING})
def test_a_session_may_end_in_any_phase_but_a_dump(phase: Phase) -> None:
    assert TRANSITIONS[phase][PhaseEvent.ENDED] is Phase.CLOSED


def test_questions_are_opened_where_commands_are_read() -> None:
    openers = {PhaseEvent.ASKED, PhaseEvent.DUMP_ASKED}
    assert [phase for phase in Phase if openers & TRANSITIONS[phase].keys()] == [Phase.READY]
    answered = {phase for phase in Phase if PhaseEvent.ANSWERED in TRANSITIONS[phase]}
    assert answered == DEAF - {Phase.CLOSED}

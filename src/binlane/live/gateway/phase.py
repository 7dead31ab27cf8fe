"""The phases of a session, and the one table of the ways between them (pure).

One phase says who is waited for: the client, the source, or whoever answers an open question.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class Phase(Enum):
    """A state of a session, named by whom it waits for."""

    LOGIN = "the client logs in"
    READY = "the client's commands are read"
    CHANGING_USER = "the client answers the source's questions on COM_CHANGE_USER"
    ASKING = "a question is open, and the client's commands wait"
    DUMPING = "a dump is under way, and nothing that the client sends is read"
    PREPARING = "the source runs statements of binlane's own, and a judged command waits for them"
    RUNNING = "the source runs a judged command, and the client's next ones wait"
    CLOSED = "the session is over once the client has been sent what there is"

    # Members are looked up for each statement, and the hash of an Enum is a function in Python.
    __hash__ = object.__hash__


class PhaseEvent(Enum):
    """An event that may end a phase."""

    LOGGED_IN = "the source has let the client in"
    USER_CHANGE_SENT = "COM_CHANGE_USER went to the source, and its answers are read"
    USER_DECIDED = "the source has decided on the user"
    ASKED = "a question was opened"
    DUMP_ASKED = "the client has asked for a dump"
    ANSWERED = "the question is answered, or the dump has ended"
    OWN_SENT = "statements of binlane's own went to the source before a command"
    OWN_FAILED = "one of these failed, and the command does not go"
    COMMAND_SENT = "a judged command went to the source"
    SETTLED = "the source owes nothing"
    ENDED = "the client is told a last error"

    __hash__ = object.__hash__


TRANSITIONS: Final[Mapping[Phase, Mapping[PhaseEvent, Phase]]] = MappingProxyType(
    {
        Phase.LOGIN: {
            PhaseEvent.LOGGED_IN: Phase.READY,
            PhaseEvent.ENDED: Phase.CLOSED,
        },
        Phase.READY: {
            PhaseEvent.USER_CHANGE_SENT: Phase.CHANGING_USER,
            PhaseEvent.ASKED: Phase.ASKING,
            PhaseEvent.DUMP_ASKED: Phase.DUMPING,
            PhaseEvent.OWN_SENT: Phase.PREPARING,
            PhaseEvent.COMMAND_SENT: Phase.RUNNING,
            PhaseEvent.SETTLED: Phase.READY,
            PhaseEvent.ENDED: Phase.CLOSED,
        },
        Phase.CHANGING_USER: {
            PhaseEvent.USER_DECIDED: Phase.READY,
            PhaseEvent.SETTLED: Phase.CHANGING_USER,
            PhaseEvent.ENDED: Phase.CLOSED,
        },
        Phase.ASKING: {
            PhaseEvent.ANSWERED: Phase.READY,
            PhaseEvent.SETTLED: Phase.ASKING,
            PhaseEvent.ENDED: Phase.CLOSED,
        },
        Phase.DUMPING: {
            PhaseEvent.ANSWERED: Phase.READY,
            PhaseEvent.SETTLED: Phase.DUMPING,
        },
        Phase.PREPARING: {
            PhaseEvent.OWN_FAILED: Phase.RUNNING,
            PhaseEvent.COMMAND_SENT: Phase.RUNNING,
            PhaseEvent.SETTLED: Phase.READY,
            PhaseEvent.ENDED: Phase.CLOSED,
        },
        Phase.RUNNING: {
            PhaseEvent.SETTLED: Phase.READY,
            PhaseEvent.ENDED: Phase.CLOSED,
        },
        Phase.CLOSED: {
            PhaseEvent.SETTLED: Phase.CLOSED,
            PhaseEvent.ENDED: Phase.CLOSED,
        },
    }
)
"""The phase behind each event, by the phase before it; an event that is not here cannot happen."""

DEAF: Final = frozenset({Phase.ASKING, Phase.DUMPING, Phase.CLOSED})
"""Phases in which nothing of the client is read."""

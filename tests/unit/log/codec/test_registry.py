from __future__ import annotations

from binlane.log.codec.registry import BODIES, REFUSED, OpaqueEvent
from binlane.log.codec.types import EventType

# No server has ever written it, so nothing is known of it.
OPAQUE = {EventType.SLAVE}


def test_every_event_type_is_read_or_refused_or_left_opaque_on_purpose() -> None:
    assert {EventType(code) for code in (*BODIES, *REFUSED)} | OPAQUE == set(EventType)
    assert len(BODIES) + len(REFUSED) + len(OPAQUE) == len(EventType)


def test_every_type_has_a_body_class_of_its_own() -> None:
    assert len(set(BODIES.values())) == len(BODIES)
    assert OpaqueEvent not in BODIES.values()

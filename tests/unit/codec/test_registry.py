from __future__ import annotations

from binlane.codec.registry import BODIES, OpaqueEvent
from binlane.codec.types import EventType

# Kept and forwarded whole: nothing of this version looks inside.
OPAQUE = {
    EventType.START_V3,
    EventType.LOAD,
    EventType.SLAVE,
    EventType.CREATE_FILE,
    EventType.EXEC_LOAD,
    EventType.NEW_LOAD,
    EventType.PRE_GA_WRITE_ROWS,
    EventType.PRE_GA_UPDATE_ROWS,
    EventType.PRE_GA_DELETE_ROWS,
    EventType.IGNORABLE,
    EventType.ROWS_QUERY,
    EventType.GTID_LOG,
    EventType.ANONYMOUS_GTID_LOG,
    EventType.PREVIOUS_GTIDS_LOG,
    EventType.TRANSACTION_CONTEXT,
    EventType.VIEW_CHANGE,
    EventType.PARTIAL_UPDATE_ROWS,
    EventType.TRANSACTION_PAYLOAD,
    EventType.HEARTBEAT_V2,
    EventType.GTID_TAGGED_LOG,
    EventType.LARGE_TRANSACTION_HEADER,
    EventType.START_ENCRYPTION,
    EventType.PARTIAL_ROW_DATA,
}


def test_every_event_type_has_a_body_or_is_left_opaque_on_purpose() -> None:
    assert set(BODIES).isdisjoint(OPAQUE)
    assert {EventType(code) for code in BODIES} | OPAQUE == set(EventType)


def test_every_type_has_a_body_class_of_its_own() -> None:
    assert len(set(BODIES.values())) == len(BODIES)
    assert OpaqueEvent not in BODIES.values()

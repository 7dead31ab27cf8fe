"""Sessions that once differed, with what the server did: they need no server."""

from __future__ import annotations

import pytest

from tests.differential.logging import cases
from tests.differential.logging.sessions import first_difference


@pytest.mark.parametrize("name", cases.names())
def test_sessions_log_as_was_recorded(name: str) -> None:
    script, recorded = cases.read(name)
    assert first_difference(cases.server_name(name), script, recorded) is None

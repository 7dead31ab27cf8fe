"""However many sessions break, the log gets a line at once and one a minute."""

from __future__ import annotations

import asyncio

import pytest

from binlane.live.gateway.warning_limiter import WarningLimiter

EVERY_S = 0.05


def test_the_first_is_told_at_once_and_the_rest_by_number(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        seldom = WarningLimiter(EVERY_S)
        for number in range(1000):
            seldom.warn("session %d ends", number, extra={"peer": str(number)})
        seldom.warn("something else %s", "happens")
        assert caplog.messages == ["session 0 ends", "something else happens"]
        await asyncio.sleep(1.5 * EVERY_S)
        assert caplog.messages[2:] == [
            f"session 999 ends (the last of 999 more like it in {EVERY_S} s)"
        ]
        assert vars(caplog.records[-1])["peer"] == "999"
        # What was told of is counted again; of a kind that ceased the next one is told at once.
        seldom.warn("session %d ends", 1000)
        seldom.warn("something else %s", "again")
        assert caplog.messages[3:] == ["something else again"]
        seldom.close()
        assert caplog.messages[4:] == [f"session 1000 ends (1 more like it in {EVERY_S} s)"]
        await asyncio.sleep(2 * EVERY_S)
        assert len(caplog.messages) == 5

    asyncio.run(test())

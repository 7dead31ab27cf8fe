"""A headless Chromium that tests look through, by its own protocol; none is needed to run the others."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_TIMEOUT_S: Final = 60.0


def browser_program() -> str:
    """The browser to test with; skips the test where there is none."""
    named = os.environ.get("BINLANE_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium here: apt-get install chromium, or BINLANE_CHROMIUM=PATH")
    return found


Visit = Callable[["Tab"], Awaitable[None]]
"""What a test does with a tab."""


class Tab:
    """A page in a browser.

    Attributes:
        complaints: What the browser logged: refused by a policy, not found, errors of scripts.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol; its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        await self._socket.send_json(message)
        while True:
            answer = await self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    async def until(self, event: str) -> None:
        """Wait for an event."""
        while (await self._next()).get("method") != event:
            pass

    async def _next(self) -> dict[str, Any]:
        async with asyncio.timeout(_TIMEOUT_S):
            answer: dict[str, Any] = json.loads((await self._socket.receive()).data)
        parameters = answer.get("params", {})
        if answer.get("method") == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif answer.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        return answer

    async def open(self, url: str) -> None:
        """Load a page."""
        await self.call("Page.navigate", url=url)
        await self.until("Page.loadEventFired")

    async def look(self, *, width: int, height: int = 900, scheme: str = "light") -> None:
        """Be a screen of that size, light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        await self.call("Emulation.setDeviceMetricsOverride", mobile=width < 600, **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def value(self, expression: str) -> Any:
        """What an expression of JavaScript gives; a promise is waited for."""
        result = await self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def wait_for(self, expression: str, is_so: Callable[[Any], bool] = bool) -> Any:
        """Wait until an expression gives what is wanted."""
        async with asyncio.timeout(_TIMEOUT_S):
            while not is_so(value := await self.value(expression)):
                await self.value("new Promise((then) => setTimeout(then, 50))")
        return value

    async def picture(self) -> bytes:
        """The whole page as a PNG."""
        result = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(result["data"])


@contextmanager
def _running(profile: Path) -> Iterator[int]:
    """A browser; gives the port of its protocol."""
    process = subprocess.Popen(
        [
            *(browser_program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-sync"),
            *("--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking"),
            *("--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        told, deadline_s = profile / "DevToolsActivePort", time.monotonic() + _TIMEOUT_S
        while not told.exists() or not told.read_text():
            assert process.poll() is None, "the browser ended"
            assert time.monotonic() < deadline_s, "the browser does not answer"
            time.sleep(0.05)
        yield int(told.read_text().splitlines()[0])
    finally:
        process.terminate()
        process.wait(_TIMEOUT_S)


async def _browse(port: int, visit: Visit) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            tabs = await answer.json()
        url = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
        async with session.ws_connect(url, max_msg_size=0) as socket:
            tab = Tab(socket)
            for domain in ("Page", "Runtime", "Log"):
                await tab.call(f"{domain}.enable")
            await visit(tab)


def browse(profile: Path, visit: Visit) -> None:
    """Do something with an empty tab; skips the test where there is no browser.

    Args:
        profile: Directory of the browser's own; is made.
        visit: What to do.
    """
    with _running(profile) as port:
        asyncio.run(_browse(port, visit))

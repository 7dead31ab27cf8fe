"""Settings that the port can and cannot use."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.errors import ConfigError
from binlane.live.gateway.settings import GatewaySettings


@pytest.mark.parametrize(
    "values",
    [{}, {"port": 0}, {"port": 65535, "source_port": 1}, {"source_socket": "/run/server.sock"}],
)
def test_usable(values: dict[str, Any]) -> None:
    settings = GatewaySettings(**values)
    assert {name: getattr(settings, name) for name in values} == values


@pytest.mark.parametrize(
    "values, key",
    [
        ({"port": -1}, "listen.port"),
        ({"port": 65536}, "listen.port"),
        ({"source_port": 0}, "source.url"),
        ({"connect_timeout_s": 0}, "connect_timeout_s"),
        ({"drain_timeout_s": -1.0}, "drain_timeout_s"),
    ],
)
def test_refused(values: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        GatewaySettings(**values)
    assert caught.value.key == key

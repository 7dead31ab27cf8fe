"""Replicas that register → URLs by which they are compared."""

from __future__ import annotations

import pytest

from binlane.live.service.proof_runs import registered_urls
from binlane.live.service.verify_settings import VerifySettings
from binlane.tables.ranges.served_logs import ServerPlace

CHECK = VerifySettings(replica_user="check user")


def test_urls_name_the_binlog() -> None:
    (one, other) = registered_urls(
        CHECK, "mysql", [("orders", "db2", 3307), ("a#b", "2001:db8::1", 3306)]
    )
    place = ServerPlace.parse(one)
    assert (place.url.user, place.url.host, place.url.port) == ("check user", "db2", 3307)
    assert (place.url.scheme, place.file) == ("mysql", "orders")
    assert ServerPlace.parse(other).url.host == "2001:db8::1"
    assert ServerPlace.parse(other).file == "a#b"
    assert registered_urls(VerifySettings(), "mysql", [("orders", "db2", 3307)]) == []


@pytest.mark.parametrize("host", ["", "a b", "x@y", "db/2", "db?socket=/tmp/s", "db#n", "\u00e4"])
def test_a_host_that_is_none_is_left_out(host: str) -> None:
    assert registered_urls(CHECK, "mariadb", [("orders", host, 3306)]) == []

from __future__ import annotations

from binlane.client.account import tls_context
from binlane.client.settings import ServerUrl


def test_who_checks_no_certificate_reads_none() -> None:
    """Those of the machine take longer than all else of a connection."""
    unchecked = tls_context(ServerUrl.parse("mariadb://any@db"))
    assert unchecked.cert_store_stats()["x509"] == 0

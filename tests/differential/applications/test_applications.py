"""Schemas and migrations of well-known applications: read without a fault, as the servers do.

They are fetched from Debian and PyPI while the tests run, so these are slow ones.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.differential.applications.comparing import compare
from tests.differential.applications.running import rules, server_of
from tests.differential.applications.scripts import Application, applications
from tests.differential.logging.servers import LoggingServer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoggingServer]:
    with server_of("mariadb", tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="module")
def mysql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoggingServer]:
    with server_of("mysql", tmp_path_factory.mktemp("mysql")) as server:
        yield server


@pytest.mark.parametrize("application", list(applications()), ids=lambda one: one.name)
@pytest.mark.parametrize("flavor", ["mariadb", "mysql"])
def test_what_the_server_reads_is_read(
    application: Application, flavor: str, request: pytest.FixtureRequest
) -> None:
    if flavor == "mysql" and not application.for_mysql:
        pytest.skip(f"{application.name} is not for MySQL")
    server: LoggingServer = request.getfixturevalue(flavor)
    compared = compare(application, server, rules(flavor, server))
    assert compared.statements
    grave = [str(one) for one in compared.differences if one.is_grave]
    assert not grave, "\n".join(grave[:20])

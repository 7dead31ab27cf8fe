"""What every test may ask for, and the marks that follow from where a test stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

_HERE = Path(__file__).parent
# What helpers of tests assert is told as what tests assert is.
pytest.register_assert_rewrite(
    *(f"tests.{path.stem}" for path in _HERE.glob("*.py") if path.stem != "conftest")
)

from binlane.live.provision.private_server import (  # noqa: E402  # behind what holds for it
    MYSQL_SOURCE_OPTIONS,
    SOURCE_OPTIONS,
    PrivateServer,
)
from tests.forked_binlane import FORKED_STARTS  # noqa: E402  # as above
from tests.lent_servers import LENT  # noqa: E402  # as above
from tests.quick_jvm import QUICK_JVM  # noqa: E402  # as above
from tests.servers import QUICK, ServerFactory, mysql_program  # noqa: E402  # as above
from tests.shared_server import left_as_found  # noqa: E402  # as above

_serial = count(1)
_MARKED_FOLDERS = {
    "system": "system",
    "differential": "system",
    "suites": "system",
    "rows": "system",
    "spark": "spark",
}


# Examples of each property: few in the usual run, which new ones join each time, many in the long one.
settings.register_profile("usual", max_examples=40, deadline=None)
settings.register_profile("long", max_examples=300, deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Have as many examples of each property as the run has time for."""
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("usual" if config.getoption("markexpr") else "long")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of a folder that needs servers or Spark."""
    for item in items:
        folder, *below = item.path.relative_to(_HERE).parts
        if below and folder in _MARKED_FOLDERS:
            item.add_marker(_MARKED_FOLDERS[folder])


@pytest.fixture(scope="session", autouse=True)
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of this run's own."""
    directory = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(directory))
        yield directory


@pytest.fixture(scope="session", autouse=True)
def _quick_jvm() -> Iterator[None]:
    """Start the JVMs of all Spark sessions quickly, those of processes that tests start included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_SUBMIT_OPTS", QUICK_JVM)
        yield


@pytest.fixture(scope="session", autouse=True)
def _forked_starts() -> Iterator[None]:
    """Load the modules of `serve` once in the run."""
    with FORKED_STARTS.open():
        yield


@pytest.fixture(scope="session")
def server_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all servers of the run live, so that MariaDB is installed once."""
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session", autouse=True)
def _lent_servers(server_directory: Path) -> Iterator[None]:
    """Servers that one test after the other has for itself."""
    with LENT.open(server_directory):
        yield


@pytest.fixture(scope="session")
def _shared_mariadb(server_directory: Path) -> Iterator[PrivateServer]:
    with PrivateServer.start(
        server_directory, name="shared", options=(*QUICK, *SOURCE_OPTIONS)
    ) as server:
        yield server


@pytest.fixture(scope="session")
def _shared_mysql(server_directory: Path) -> Iterator[PrivateServer]:
    with PrivateServer.start(
        server_directory,
        name="shared-mysql",
        options=(*QUICK, *MYSQL_SOURCE_OPTIONS),
        program=mysql_program(),
    ) as server:
        yield server


@pytest.fixture(scope="module")
def mariadb_server(_shared_mariadb: PrivateServer) -> Iterator[PrivateServer]:
    """A source with rows in full; one serves the whole run, and each module finds it as new."""
    with left_as_found(_shared_mariadb):
        yield _shared_mariadb


@pytest.fixture(scope="module")
def mysql_server(_shared_mysql: PrivateServer) -> Iterator[PrivateServer]:
    """The same of MySQL; tests that ask for it are skipped where there is none."""
    with left_as_found(_shared_mysql):
        yield _shared_mysql


@pytest.fixture
def servers(server_directory: Path, request: pytest.FixtureRequest) -> Iterator[ServerFactory]:
    """Servers of the test's own."""
    # Names that are alike in their first letters must not share data.
    name = re.sub(r"\W+", "_", request.node.name)[:30]
    with ExitStack() as stack:
        yield ServerFactory(LENT, server_directory, f"{name}-{next(_serial)}", stack)

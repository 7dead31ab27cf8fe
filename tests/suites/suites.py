"""The suites that drivers and frameworks bring, one after the other at each place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.suites.comparing import Comparison, compare
from tests.suites.places import DIRECT, PORTS, Place, place


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One of them.

    Attributes:
        name: Of the project.
        version: That is fetched.
        scope: What the MIXED binlog is of, as LOG has it.
        prepare: Makes what it expects at a place.
        run: Runs it at a place, with a directory of its own; what came of each test.
        flavors: Of the servers on which it is run.
        options: Of the server, by flavor.
        has_tls: It wants servers with TLS.
    """

    name: str
    version: str
    scope: str
    prepare: Callable[[Place], None]
    run: Callable[[Place, Path], dict[str, str]]
    flavors: Sequence[str] = ("mariadb", "mysql")
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    has_tls: bool = False


@dataclass(frozen=True, slots=True)
class Compared:
    """A suite at a port.

    Attributes:
        comparison: With what came of it at the server.
        log: What `serve` has written.
    """

    comparison: Comparison
    log: str


def run_suite(
    suite: Suite, flavor: str, directory: Path, kinds: Sequence[str] = PORTS
) -> dict[str, Compared]:
    """Run a suite at a server, and at ports; what differs, by the kind of place."""
    direct, _ = _run(suite, flavor, DIRECT, directory)
    compared = {}
    for kind in kinds:
        told, log = _run(suite, flavor, kind, directory)
        compared[kind] = Compared(compare(suite.name, kind, direct, told), log)
    return compared


def _run(suite: Suite, flavor: str, kind: str, directory: Path) -> tuple[dict[str, str], str]:
    own = directory / f"{kind}-own"
    own.mkdir(parents=True)
    with place(
        kind,
        directory,
        flavor=flavor,
        options=suite.options.get(flavor, ()),
        scope=suite.scope,
        has_tls=suite.has_tls,
    ) as where:
        suite.prepare(where)
        return suite.run(where, own), where.log

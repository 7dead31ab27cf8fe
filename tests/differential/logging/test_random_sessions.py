"""Random sessions on a real server and through ours: every error, note and event is the same."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.differential.logging import cases
from tests.differential.logging.campaign import Campaign, told
from tests.differential.logging.generator import Generator
from tests.differential.logging.productions import Productions
from tests.differential.logging.recorder import Recorder
from tests.differential.logging.servers import mariadb, mysql
from tests.differential.logging.sessions import first_difference
from tests.differential.logging.shrinking import Found, run, shrunk
from tests.differential.logging.sources import Source, dialect

_FEW = range(25)
_MANY = range(25, 900)
_LEAST_STATEMENTS = 20_000
_LEAST_EQUAL = 0.999
_FOUND = Path(".run/logging")
_FEW_DRAWN = {"grammar": range(700, 712), "settings": (4, 5, 6, 10, 12, 13, 15)}
_FEW_MAY_DIFFER = 0.08
_FEW_TAKEN = 0.55
_LEAST_DRAWN_EQUAL = {"grammar": 0.97, "settings": 0.96, "applications": 0.97}
"""What differs of these is told, kind by kind, and stands in docs/fidelity.md by its cause."""


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def recorder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorder]:
    directory = tmp_path_factory.mktemp("logging")
    with ExitStack() as stack:
        if request.param == "mariadb":
            server = stack.enter_context(mariadb(directory))
        else:
            server = stack.enter_context(mysql(directory))
        made = Recorder(server)
        stack.callback(made.close)
        yield made


def test_sessions_log_as_the_server_does(recorder: Recorder) -> None:
    flavor = recorder.server.flavor
    for seed in _FEW:
        found = run(
            recorder, Generator(flavor, seed, has_blackhole=recorder.has_blackhole).script()
        )
        if found is not None:
            smallest = shrunk(recorder, found)
            pytest.fail(
                f"seed {seed}: {smallest.difference}\n"
                f"as a case for {cases.FOLDER}/NAME.{flavor}.json:\n"
                f"{cases.text(smallest.script, smallest.recorded)}"
            )


@pytest.mark.slow
def test_many_sessions_log_as_the_server_does(
    recorder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    """What differs is left as cases in `.run/logging`.

    A session is compared up to its first difference; what follows hangs on it.
    """
    flavor = recorder.server.flavor
    for old in _FOUND.glob(f"*.{flavor}.json"):
        old.unlink()
    compared = 0
    differing: list[int] = []
    for seed in _MANY:
        script = Generator(flavor, seed, has_blackhole=recorder.has_blackhole).script()
        found = run(recorder, script)
        if found is None:
            compared += len(script.statements)
            continue
        differing.append(seed)
        compared += min(found.difference.index + 1, len(script.statements))
        _keep(recorder, found, f"{seed}.{flavor}.json")
    share = 1 - len(differing) / compared
    figures = (
        f"{flavor}: {compared - len(differing):,} of {compared:,} statements in {len(_MANY)} "
        f"sessions are equal, {share:.3%}; sessions that differ: {differing or 'none'}"
    )
    with capsys.disabled():
        print(f"\n{figures}")  # noqa: T201 - what the test is run for
    assert compared >= _LEAST_STATEMENTS
    assert share >= _LEAST_EQUAL, f"{figures}; see {_FOUND}"


@pytest.mark.parametrize("source", sorted(_FEW_DRAWN))
def test_drawn_sessions_log_as_the_server_does(recorder: Recorder, source: str) -> None:
    """What is drawn changes with the grammar, so that what is known to differ may be among it."""
    drawn = Source(source, recorder)
    campaign = Campaign(recorder, goes_on=True)
    for seed in _FEW_DRAWN[source]:
        campaign.compare(f"{source}-{seed}", drawn.script(seed))
    assert not campaign.troubles
    differing = "\n\n".join(map(told, campaign.found.values()))
    assert campaign.differing <= campaign.statements * _FEW_MAY_DIFFER, differing
    assert campaign.taken >= campaign.statements * _FEW_TAKEN


@pytest.mark.slow
@pytest.mark.parametrize("source", sorted(_LEAST_DRAWN_EQUAL))
def test_a_nights_drawings_log_as_the_server_does(
    recorder: Recorder, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kind of difference is left as a case in `.run/logging`."""
    drawn = Source(source, recorder)
    productions = Productions(dialect(recorder)) if source == "grammar" else None
    campaign = Campaign(recorder, _FOUND, goes_on=True, productions=productions)
    for seed in range(*drawn.night):
        campaign.compare(f"{source}-{seed}", drawn.script(seed))
    with capsys.disabled():
        print("\n".join(("", *campaign.lines())))  # noqa: T201 - what the test is run for
    equal = 1 - campaign.differing / campaign.statements
    assert equal >= _LEAST_DRAWN_EQUAL[source], f"{campaign.figures()}; see {_FOUND}"


def _keep(recorder: Recorder, found: Found, name: str) -> None:
    """Write what differs as a short case, to be fixed and then kept."""
    smallest = shrunk(recorder, found)
    _FOUND.mkdir(parents=True, exist_ok=True)
    (_FOUND / name).write_text(cases.text(smallest.script, smallest.recorded), encoding="utf-8")


def test_a_case_reads_as_it_was_written(recorder: Recorder, tmp_path: Path) -> None:
    script = Generator(recorder.server.flavor, 0).script(10)
    recorder.reset(script.schema)
    recorded = tuple(recorder.run(script.texts))
    path = tmp_path / "case.json"
    path.write_text(cases.text(script, recorded), encoding="utf-8")
    read_script, read_recorded = cases.read_file(path)
    assert read_script == script
    assert first_difference(recorder.server_name, read_script, read_recorded) == (
        first_difference(recorder.server_name, script, recorded)
    )

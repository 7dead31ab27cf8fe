"""Compiling ahead: what is compiled again, what is left alone, what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from binlane.log.kernels import build as building
from binlane.log.kernels import load
from binlane.log.kernels.load import (
    Target,
    _made_for,
    _runs_portable,
    compiled_module,
    compiled_name,
    kernel_modules,
)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder in which each module seems to be compiled."""
    for name in kernel_modules():
        (tmp_path / (compiled_name(name) + EXTENSION_SUFFIXES[0])).touch()
    return tmp_path


def _build_without_compiler(folder: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(folder))
        yield from building.build(folder)


def test_what_is_there_is_not_compiled_again_and_needs_no_compiler(built: Path) -> None:
    assert list(_build_without_compiler(built)) == []


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(building.BuildError, match=r"missing: .*a C compiler"):
        list(_build_without_compiler(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_failing_takes_one_line(tmp_path: Path) -> None:
    copy = tmp_path / "kernels"
    environment = os.environ | {"PATH": str(copy), "XDG_CACHE_HOME": str(tmp_path)}
    program = (
        "import sys; from binlane.log.kernels import build; from pathlib import Path; "
        "build.writable_folder = lambda: Path(sys.argv[1]); sys.exit(build.main())"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("binlane: kernels are not compiled: missing: ")


def test_a_new_module_replaces_older_ones_of_its_own(built: Path) -> None:
    names = {path.name for path in built.iterdir()}
    scan = compiled_name("scan") + EXTENSION_SUFFIXES[0]
    old = f"_compiled_scan_{'0' * 16}{EXTENSION_SUFFIXES[0]}"
    others = {f"_portable_scan_{'0' * 16}.so", f"_compiled_scan_more_{'0' * 16}.so"}
    for name in (old, *others):
        (built / name).touch()
    building._remove_others(built / scan, "scan", Target.HOST)
    assert {path.name for path in built.iterdir()} == names | others


def test_only_what_was_abandoned_long_ago_is_removed(tmp_path: Path) -> None:
    old, new = tmp_path / ".building-old", tmp_path / ".building-new"
    for place in (old, new):
        place.mkdir()
        (place / "half.so").touch()
    os.utime(old, (0, 0))
    building._remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == [new]


def test_modules_of_a_wheel_do_not_depend_on_the_processor() -> None:
    old, new = "flags : sse4_2 avx", "flags : avx avx2"
    assert _made_for(Target.HOST, old) != _made_for(Target.HOST, new)
    assert _made_for(Target.PORTABLE, old) == _made_for(Target.PORTABLE, new)
    assert len({compiled_name("scan", target) for target in Target}) == len(Target)


@pytest.mark.parametrize(
    ("machine", "processor", "runs"),
    [
        ("x86_64", "flags : sse4_2 avx", False),
        ("x86_64", "flags : abm avx avx2 bmi1 bmi2 f16c fma movbe", True),
        ("aarch64", "Features : fp asimd", True),
    ],
)
def test_an_old_processor_is_not_given_what_it_cannot_run(
    machine: str, processor: str, *, runs: bool
) -> None:
    assert _runs_portable(machine, processor) is runs


def test_a_cache_that_cannot_be_looked_into_is_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    # Too long a name fails for root, too, whom no permission keeps out.
    monkeypatch.setenv("XDG_CACHE_HOME", f"/{'x' * 300}")
    monkeypatch.setattr(load, "FOLDER", Path("/nowhere"))
    assert compiled_module.__wrapped__("scan") is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be a user without a name")
@pytest.mark.parametrize(
    "asked",
    [
        "from binlane.log.kernels import load; print(load.folders() == (load.FOLDER,))",
        (
            "from binlane.tables.ranges.kept_facts import KeptFacts, default_directory;"
            " print(KeptFacts(default_directory()).read('file:/x', piece_bytes=1) is None)"
        ),
    ],
)
def test_a_user_without_a_name_has_no_cache(asked: str) -> None:
    modules, _, rest = asked.partition(";")
    program = f"import os; {modules}; os.setuid(54321); {rest}"
    environment = {k: v for k, v in os.environ.items() if k not in {"HOME", "XDG_CACHE_HOME"}}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True\n", done.stderr

"""The layers of ARCHITECTURE.md hold, no imports go round, and the pure layers are pure."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.rules import ROOT

PACKAGE = ROOT / "src/binlane"
PURE = [
    "names.py",
    "positions.py",
    "errors.py",
    "version.py",
    "visible.py",
    "log/codec",
    "log/grouping",
    "statements/sql",
    "statements/policy",
    "statements/scope",
    "statements/programs",
    "statements/session",
    "binlogs/routing",
    "binlogs/filters",
    "tables/columnar",
    "live/capture/asking.py",
    "live/capture/event_stream.py",
    "live/capture/identity.py",
    "live/capture/order.py",
    "live/capture/place_search.py",
    "live/capture/raw_stream.py",
    "live/capture/source_facts.py",
    "client/authentication.py",
    "client/dialogue.py",
    "client/packet_events.py",
    "client/packet_flow.py",
    "client/remote_machine.py",
]
WORLD = {
    "asyncio",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "select",
    "shutil",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
}
CLOCKS = {"now", "utcnow", "today"}


def pure_modules() -> Iterator[Path]:
    for name in PURE:
        path = PACKAGE / name
        if name.endswith(".py"):
            yield path
        else:
            yield from sorted(path.rglob("*.py"))
    yield PACKAGE / "live/gateway/relay.py"
    yield PACKAGE / "live/dump/replica_dump.py"


def test_layers_import_downwards_only() -> None:
    # In a process of its own: it reconfigures logging.
    script = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_no_module_imports_itself_by_way_of_others() -> None:
    modules = {_module_name(path): path for path in PACKAGE.rglob("*.py")}
    sorter = TopologicalSorter(
        {name: set(_imports(path, modules)) - {name} for name, path in modules.items()}
    )
    try:
        sorter.prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize(
    "path", list(pure_modules()), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_pure_modules_do_not_touch_the_world(path: Path) -> None:
    assert sorted(_touches(ast.parse(path.read_text()))) == []


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """The modules that one imports: wherever it does, for the type checker only or late."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom) and (outer := node.module) in modules:
            inner = (f"{outer}.{name.name}" for name in node.names)
            yield from (name if name in modules else str(outer) for name in inner)


def _touches(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.split(".")[0] in WORLD)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] in WORLD:
                yield module
            case ast.Call(func=ast.Name(id="open" | "print" | "input" as name)):
                yield name
            case ast.Call(func=ast.Attribute(attr=name)) if name in CLOCKS:
                yield name

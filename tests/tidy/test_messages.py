"""What messages tell can be done, and the numbers of errors are servers'."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import MappingProxyType

import click
import grimp
import pytest

from binlane.cli.main import COMMANDS, binlane
from binlane.log.codec.packets.replies import CLIENT_ERRNOS
from tests.rules import ROOT

SOURCES = ROOT / "src"
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")

# Whose options messages may name that other commands reach by imports as well: modules, and why.
ONLY = MappingProxyType(
    {
        "binlane.binlogs.cat.event_selection": ("cat",),  # watch selects by time and GTID alone
        "binlane.statements.check": ("check",),  # EXPLAIN BINLOG has no files
        "binlane.cli.check": ("check",),
        "binlane.cli.filter_options": ("cat", "route", "land"),  # verify imports land
        "binlane.cli.engine_options": ("route", "land"),  # as above
        "binlane.cli.land": ("land",),
        "binlane.cli.password_input": (
            "cat",
            "check",
            "setup",
            "land",
            "watch",
        ),  # verify imports land
        "binlane.client.remote_machine": ("cat",),  # nobody else leaves out GTIDs
        "binlane.log.codec.encryption": (
            "cat",
            "explain",
            "verify",
            "route",
            "land",
        ),  # files' keys
        "binlane.tables.landing": ("land",),  # the others read what a target has
        "binlane.statements.policy.server": ("check",),  # `server_of` reads its option
        "binlane.live.service.config": ("serve", "config"),  # others read sizes with it
        "binlane.live.service.setting_keys": ("serve", "config"),
        "binlane.live.service.setting_sources": ("serve", "config"),
        "binlane.live.provision.source_schema": ("setup",),  # what it makes is told there
        "binlane.tables.spark": ("land",),
    }
)
# What belongs to other programs, where a message says to whom: the words before the option.
_OTHERS = re.compile(
    r"start it with |mysqld |pip install |apt-get install |clients verify it with |"
    r"\./run demo |prohibited while |or --py-files"
)


def _options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for each in getattr(command, "commands", {}).values():
        yield from _options(each)


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((SOURCES / "binlane").rglob("*.py")):
        yield _name(path), ast.parse(path.read_text("utf-8"))


def _messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The texts of errors and hints: what they are called with, and constants of that name."""
    for node in ast.walk(tree):
        inside: list[ast.AST] = []
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            if called.endswith("Error") or called in ("warning", "warn", "error", "info"):
                inside = [*node.args, *(one.value for one in node.keywords)]
            else:
                inside = [one.value for one in node.keywords if one.arg in ("hint", "key", "note")]
        elif isinstance(node, ast.AnnAssign | ast.Assign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = " ".join(ast.unparse(target) for target in targets)
            if "hint" in named.lower():
                inside = [node.value]
        for part in inside:
            for one in ast.walk(part):
                if isinstance(one, ast.Constant) and isinstance(one.value, str):
                    yield one.lineno, one.value


def _users(module: str, reached: Mapping[str, AbstractSet[str]]) -> set[str]:
    """The commands that may print what a module says."""
    names = module.split(".")
    for end in range(len(names), 1, -1):
        only = ONLY.get(".".join(names[:end]))
        if only is not None:
            return set(only)
    return {command for command, modules in reached.items() if module in modules}


def test_messages_name_options_that_their_commands_have() -> None:
    graph = grimp.build_graph("binlane", cache_dir=None)
    common = set(_options(binlane)) | {"--help"}
    options, reached = {}, {}
    for name in COMMANDS:
        module = f"binlane.cli.{name}"
        options[name] = common | set(_options(importlib.import_module(module).command))
        reached[name] = graph.find_upstream_modules(module) | {module}
    seen, wrong = set(), []
    for module, tree in _modules():
        for line, text in set(_messages(tree)):
            for found in _OPTION.finditer(text):
                if _OTHERS.search(text[: found.end()]):
                    continue
                users = _users(module, reached)
                lacking = sorted(one for one in users if found[0] not in options[one])
                seen.add(found[0])
                if lacking:
                    wrong.append(f"{module}:{line}: {found[0]} is no option of {lacking}: {text}")
    assert wrong == []
    assert len(seen) > 30, "what messages say was not found"


def _numbers() -> Iterator[tuple[str, int]]:
    """The numbers that errors are given in the sources, each with its place."""
    for module, tree in _modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.keyword) or node.arg != "errno":
                continue
            value: object = None
            if isinstance(node.value, ast.Constant):
                value = node.value.value
            elif isinstance(node.value, ast.Name):
                value = getattr(importlib.import_module(module), node.value.id, None)
            if isinstance(value, int):
                yield f"{module}:{node.value.lineno}", value


def test_errors_have_numbers_of_servers() -> None:
    """What a client finds in its own range it takes for a packet that is malformed (MariaDB's)."""
    numbers = list(_numbers())
    wrong = [(at, number) for at, number in numbers if any(number in own for own in CLIENT_ERRNOS)]
    assert wrong == []
    assert len(numbers) > 30, "they were not found"


@pytest.mark.parametrize("only", sorted(ONLY))
def test_exceptions_are_still_there(only: str) -> None:
    importlib.import_module(only)

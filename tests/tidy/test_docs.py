"""What the documentation says exists, and what exists is documented."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from binlane.cli.main import COMMANDS, binlane
from binlane.live.service.config import compose, effective
from binlane.live.service.setting_keys import KEYS, setting_of
from binlane.tables.spark.source_options import _OPTIONS
from docs.generate import command_line, ledger
from tests.rules import ROOT, load_rules

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
GENERATED = {"reference/cli.md", "rules.md"}


def _blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def _default(value: object) -> str:
    return "" if value is None else f"`{json.dumps(value)}`"


def test_every_setting_is_documented_as_it_is() -> None:
    text = (DOCS / "reference/settings.md").read_text().partition("## All settings")[2]
    lines = [line.split("|")[1:4] for line in text.splitlines() if line.startswith("| `")]
    rows = {name.strip(" `"): [default.strip(), sighup.strip()] for name, default, sighup in lines}
    # What stands for a default here is what is left out there.
    given = {"source": {"url": "mariadb://a@b"}, "http": {}, "archive": {"uri": "s3://b"}}
    defaults = effective(compose(given, base=Path()))
    defaults["binlog"]["expire_logs_days"] = defaults["binlog"]["binlog_expire_logs_seconds"]
    defaults["embedded"]["options"] = []
    for section, keys in given.items():
        for key in keys:
            del defaults[section][key]
    wanted = {
        setting_of(section, key): [
            _default(defaults[section].get(key)),
            "yes" if told.at_sighup else "",
        ]
        for section, keys in KEYS.items()
        for key, told in keys.items()
    }
    assert rows == wanted


def test_every_option_of_the_data_source_is_documented() -> None:
    text = (DOCS / "how-to/spark.md").read_text()
    assert [option.name for option in _OPTIONS.values() if f"`{option.name}`" not in text] == []


@pytest.mark.parametrize("page", ["reference/settings.md", "tutorial.md"])
def test_settings_that_are_shown_are_valid(page: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    blocks = _blocks(DOCS / page, "toml")
    assert blocks
    for block in blocks:
        assert compose(tomllib.loads(block), base=tmp_path).data_dir == tmp_path / "data"


def test_json_that_is_shown_is_json() -> None:
    blocks = _blocks(DOCS / "reference/json.md", "json")
    assert all(json.loads(block) for block in blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_commands_that_are_shown_exist(page: Path) -> None:
    shown = set(re.findall(r"\bbinlane ([a-z]+)\b", "\n".join(_blocks(page, "console"))))
    assert shown - set(COMMANDS) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+\.md)(?:#[^)]*)?\)", page.read_text())
    generated = {(DOCS / name).resolve() for name in GENERATED}
    missing = [
        target
        for target in targets
        if "://" not in target
        and not (path := (page.parent / target).resolve()).exists()
        and path not in generated
    ]
    assert missing == []


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_paths_that_are_named_exist(name: str) -> None:
    package = ROOT / "src/binlane"
    folders = [ROOT, package, *package.iterdir()]
    named = re.findall(r"`([\w.-]+/[\w./-]+)`", (ROOT / name).read_text())
    assert named
    missing = {
        path
        for path in named
        if not any((each / path).exists() or (each / f"{path}.py").exists() for each in folders)
    }
    assert missing == set()


def test_modules_that_the_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    packages = {path.name: path for path in (ROOT / "src/binlane").rglob("*") if path.is_dir()}
    named = {
        (package, module)
        for package, module in re.findall(r"\b([a-z_]+)\.([a-z_]+)\b", text)
        if package in packages and module != "py"
    }
    missing = {
        f"{package}.{module}"
        for package, module in named
        if not (packages[package] / f"{module}.py").exists()
        and not (packages[package] / module).is_dir()
    }
    assert len(named) > 10
    assert missing == set()


def test_the_site_has_every_page_once() -> None:
    _, nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")
    listed = re.findall(r"([\w/-]+\.md)$", nav, re.MULTILINE)
    there = {str(page.relative_to(DOCS)) for page in PAGES} | GENERATED
    assert sorted(listed) == sorted(there)


def test_the_home_page_leads_to_every_page_but_decisions() -> None:
    linked = set(re.findall(r"\]\(([\w/-]+\.md)\)", (DOCS / "index.md").read_text()))
    there = {str(page.relative_to(DOCS)) for page in PAGES} | GENERATED
    decisions = {name for name in there if re.match(r"decisions/\d", name)}
    assert there - decisions - {"index.md"} - linked == set()


def test_commands_that_are_shown_run_where_binlane_was_set_up() -> None:
    bare = re.compile(r"^\$ (?:sudo )?(?:binlane|python|pip)\b.*", re.MULTILINE)
    shown = {page.name: bare.findall("\n".join(_blocks(page, "console"))) for page in PAGES}
    assert {name: lines for name, lines in shown.items() if lines} == {}


def test_no_page_installs_from_an_index_that_has_no_binlane() -> None:
    texts = [*PAGES, ROOT / "README.md"]
    assert [
        page.name for page in texts if re.search(r"pip install binlane\b", page.read_text())
    ] == []


def test_the_command_line_page_has_every_command() -> None:
    page = command_line()
    assert [name for name in COMMANDS if f"`binlane {name}`" not in page] == []


def _options(command: click.Command, name: str) -> Iterator[tuple[str, click.Option]]:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield f"{name} {parameter.opts[-1]}", parameter
    if isinstance(command, click.Group):
        context = click.Context(command, **command.context_settings)
        for child_name in command.list_commands(context):
            child = command.get_command(context, child_name)
            assert child is not None, f"{child_name} is listed and missing"
            yield from _options(child, f"{name} {child_name}")


def test_every_option_says_what_it_does() -> None:
    assert [name for name, option in _options(binlane, "binlane") if not option.help] == []


def test_the_ledger_page_has_every_rule() -> None:
    page = ledger()
    assert [rule.id for rule in load_rules() if f"`{rule.id}`" not in page] == []

"""`binlane cat --summary` of large files says what it says of small ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binlane.binlogs.store import byte_source
from binlane.cli import main
from binlane.cli.cat import command
from binlane.cli.cat_request import CatRequest
from binlane.cli.cat_summary import is_worth_kernels
from binlane.log.kernels.load import compiled_module
from tests.fixture_sets import fixture_set

pytestmark = pytest.mark.skipif(
    compiled_module("summary") is None, reason="the kernels are not built"
)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """The files of a set, and one that is damaged at its end."""
    paths = []
    for name, data in fixture_set("md1011_gtid").binlogs:
        path = tmp_path / name
        path.write_bytes(data)
        paths.append(str(path))
    cut = tmp_path / "cut"
    cut.write_bytes(data[:-3])
    return [*paths, str(cut)]


def request(*arguments: str) -> CatRequest:
    context = command.make_context("cat", [*arguments])
    given: dict[str, Any] = dict(context.params)
    return CatRequest.of(given.pop("files"), given)


@pytest.mark.parametrize("option", [[], ["--format=json"]])
def test_large_files_are_counted_by_kernels(
    files: list[str],
    option: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = tmp_path / "page.html"
    told = []
    for large_bytes in (byte_source.FAST_BYTES_MIN, 1):
        monkeypatch.setattr(byte_source, "FAST_BYTES_MIN", large_bytes)
        assert is_worth_kernels(request("--summary", *files)) == (large_bytes == 1)
        assert main(["cat", "--summary", f"--html={page}", *option, *files[:-1]]) == 0
        told.append((capsys.readouterr().out, page.read_text()))
        assert main(["cat", "--summary", *option, *files]) == 1
        told.append((capsys.readouterr().err, ""))
    assert told[:2] == told[2:]


@pytest.mark.parametrize(
    "option", ["--start-position=4", "--do-table=shop.my", "--force", "--offset=3", "-"]
)
def test_what_is_left_to_the_reference(
    files: list[str], option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_source, "FAST_BYTES_MIN", 1)
    assert not is_worth_kernels(request("--summary", option, *files))

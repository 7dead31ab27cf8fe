"""The command line: exit codes, and what goes to which stream."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import pytest
from zstandard import ZstdCompressor

from binlane.cli import main
from binlane.cli.main import COMMANDS, exit_code
from binlane.errors import (
    BinlaneError,
    CodecError,
    ConfigError,
    CorruptStoreError,
    DefinitionError,
    PeerError,
    StoreError,
)
from tests.fixture_sets import fixture_set


@pytest.fixture
def binlog(tmp_path: Path) -> Path:
    _, data = fixture_set("md1011_txn").binlogs[0]
    path = tmp_path / "binlog.000001"
    path.write_bytes(data)
    return path


def test_cat_prints_to_stdout_and_ends_with_0(
    binlog: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cat", str(binlog)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;\n")
    assert printed.out.endswith("PSEUDO_SLAVE_MODE=0*/;\n")
    assert printed.err == ""


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", ZstdCompressor().compress)],
)
def test_compressed_files_are_read_as_they_are(
    binlog: Path, capsys: pytest.CaptureFixture[str], suffix: str, compress: object
) -> None:
    packed = binlog.with_name(binlog.name + suffix)
    packed.write_bytes(compress(binlog.read_bytes()))  # type: ignore[operator]  # one of two functions
    assert main(["cat", "--format=json", str(packed)]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["file"] == "binlog.000001"


def test_damage_is_told_after_what_came_before(
    binlog: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(binlog.read_bytes())
    data[1100] ^= 1
    binlog.write_bytes(data)
    assert main(["cat", "--format=json", str(binlog)]) == 1
    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.out.splitlines()]
    error, hint = printed.err.splitlines()
    assert error.startswith("binlane: checksum is ")
    assert error.endswith(f"({binlog}:{lines[-1]['next_position']})")
    assert hint.startswith("hint: ")


def test_a_cut_file_is_an_error_with_its_position(
    binlog: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binlog.write_bytes(binlog.read_bytes()[:-30])
    assert main(["cat", str(binlog)]) == 1
    assert "the file ends inside XID" in capsys.readouterr().err


def test_a_missing_file_cannot_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cat", "/nowhere/binlog.000001"]) == 3
    assert "/nowhere/binlog.000001" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["cat"], ["nope"], ["cat", "--nope", "x"], ["cat", "--format=xml", "x"]]
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("binlane ")
    assert all(name in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"Usage: binlane {name}" in capsys.readouterr().out


def test_verify_lists_faults_on_stdout(binlog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(binlog)]) == 0
    data = bytearray(binlog.read_bytes())
    data[1100] ^= 1
    binlog.write_bytes(data)
    capsys.readouterr()
    assert main(["verify", str(binlog)]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{binlog}:")
    assert "checksum" in out


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CodecError("x"), 1),
        (DefinitionError("x"), 1),
        (CorruptStoreError("x", path="p"), 1),
        (ConfigError("x", key="k"), 2),
        (StoreError("x", path="p"), 3),
        (PeerError("x", peer="p", phase="q"), 3),
    ],
)
def test_exit_codes_by_who_must_act(error: BinlaneError, code: int) -> None:
    assert exit_code(error) == code

"""The command line: exit codes, and what goes to which stream."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from zstandard import ZstdCompressor

from binlane.cli import main
from binlane.cli.main import COMMANDS, binlane, exit_code
from binlane.errors import (
    BinlaneError,
    CodecError,
    ConfigError,
    CorruptStoreError,
    DefinitionError,
    PeerError,
    StoreError,
)
from binlane.log.codec.format import MAGIC
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


def test_a_little_zstd_that_says_gigabytes_costs_little_memory(tmp_path: Path) -> None:
    packed = tmp_path / "binlog.000001.zst"
    compressor = ZstdCompressor().compressobj()
    with packed.open("wb") as out:
        out.write(compressor.compress(MAGIC))
        for _ in range(1500):
            out.write(compressor.compress(bytes(1 << 20)))
        out.write(compressor.flush())
    assert packed.stat().st_size < 100_000
    # What getrusage tells is that of the process before exec, too.
    program = (
        "import re, sys; from binlane.cli import main; code = main(sys.argv[1:]); "
        "told = open('/proc/self/status').read(); "
        "print(code, int(re.search(r'VmHWM:\\s+(\\d+)', told)[1]) >> 10)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "cat", str(packed)],
        capture_output=True,
        text=True,
        check=True,
    )
    code, megabytes = map(int, done.stdout.splitlines()[-1].split())
    assert code == 1
    assert megabytes < 400
    assert "says it is 0 bytes long" in done.stderr


def test_what_is_read_is_not_overwritten(
    binlog: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    before = binlog.read_bytes()
    link = tmp_path / "link"
    link.symlink_to(binlog)
    for result in (binlog, link):
        assert main(["cat", str(binlog), "--result-file", str(result)]) == 2
        assert "would overwrite" in capsys.readouterr().err
    assert main(["cat", "--summary", str(binlog), "--html", str(binlog)]) == 2
    assert binlog.read_bytes() == before


@pytest.mark.parametrize("command", ["cat", "route"])
def test_a_position_that_no_file_has_is_wrong_usage(command: str, binlog: Path) -> None:
    assert main([command, str(binlog), "--start-position", "9" * 23]) == 2


@pytest.mark.parametrize("command", [["cat"], ["explain", "4"], ["verify"]])
def test_a_closed_standard_output_is_told_where_it_is_written(
    command: list[str], binlog: Path
) -> None:
    name, *rest = command
    call = [sys.executable, "-m", "binlane", name, str(binlog), *rest]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *call], capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if name == "verify" else 3)
    assert ("Bad file descriptor" in done.stderr) == (name != "verify")


def test_a_password_cannot_be_typed_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "binlane", "cat", "-R", "-h", "127.0.0.1", "-p", "f"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.returncode == 2
    assert "there is no terminal" in done.stderr


@pytest.mark.parametrize(
    "error, told, code",
    [
        (FileNotFoundError(2, "No such file or directory", "/gone"), "directory (/gone)", 3),
        (MemoryError(), "not enough memory", 3),
        (ValueError("7 of 9"), "a fault of binlane: ValueError: 7 of 9", 3),
        (ModuleNotFoundError("No module", name="pymysql"), "pymysql is not installed", 2),
    ],
)
def test_nobody_sees_a_traceback_who_did_not_ask(
    error: Exception,
    told: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(binlane, "main", fail)
    assert main(["cat"]) == code
    assert told in capsys.readouterr().err
    with pytest.raises(type(error)):
        main(["--debug", "cat"])

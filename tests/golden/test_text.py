"""The text of every set is the official tool's, line by line, but for documented differences.

`docs/reference/text.md` lists the differences; each has a predicate here, and no other line may
differ.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final

import pytest

from binlane.binlogs.cat.text.event_text import local_time
from binlane.binlogs.cat.text.text_lines import TextLines
from binlane.binlogs.cat.text.text_options import Base64Output, TextOptions
from binlane.log.grouping.inner import expanded_all
from binlane.log.grouping.walk import walk
from tests.fixture_sets import FixtureSet, fixture_names, fixture_set

DEFAULT: Final = TextOptions()
ROWS: Final = TextOptions(
    verbose=2, base64_output=Base64Output.DECODE_ROWS, print_table_metadata=True
)
# The tools name files of their own by what is free in their directory.
_LOAD_FILE: Final = re.compile(r"'[^']*/SQL_LOAD_MB-([0-9a-f]+)-[0-9a-f]+'")
_LARGE: Final = frozenset({"md1011_bigrow", "my97_bigrow"})
# Their rows do not decode, which tests/unit/binlogs/cat/text/test_lines.py shows.
_HIRES: Final = "md1011_types_temporal_hires53"


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The official texts were made in UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    local_time.cache_clear()
    yield
    monkeypatch.undo()
    time.tzset()
    local_time.cache_clear()


def rendered(data: bytes, options: TextOptions) -> list[str]:
    renderer = TextLines(options)
    events = expanded_all(walk([data], file="binlog.000001"), file="binlog.000001")
    texts = [
        *renderer.head(),
        *(line for event in events for line in renderer.lines(event, file="binlog.000001")),
        *renderer.finish(),
    ]
    return "\n".join(texts).split("\n")


def texts(fixtures: FixtureSet, kind: str) -> Iterator[tuple[str, list[str]]]:
    """Name of each binlog file with what the official tool prints of it."""
    for path in sorted(fixtures.files):
        if path.endswith(f".{kind}.txt"):
            lines = fixtures.text(path).removesuffix("\n").split("\n")
            yield path.removesuffix(f".{kind}.txt"), lines


def plain(fixtures: FixtureSet, file: str) -> bytes:
    return fixtures.files.get(f"{file}.decrypted", fixtures.files[file])


def is_right_row_count(official: Sequence[str], ours: Sequence[str]) -> bool:
    """Without -v mariadb-binlog stops counting at a GEOMETRY or COMPRESSED column."""
    return list(official) == ["# Number of rows: 1"] and bool(
        re.fullmatch(r"# Number of rows: [2-4]", ours[0]) and len(ours) == 1
    )


def is_type_name(official: Sequence[str], ours: Sequence[str]) -> bool:
    """mariadb-binlog does not know the types of COMPRESSED and old temporal columns."""
    types = r"(TIME|DATETIME|TIMESTAMP|DATE|YEAR|\S+ [A-Z(0-9)]+ COMPRESSED( CHARSET .*)?)[,)]"
    return all("INVALID_TYPE(" in line for line in official) and all(
        re.fullmatch(rf"#         {types}", line) for line in ours
    )


def is_geometry(official: Sequence[str], ours: Sequence[str]) -> bool:
    """The tool of MySQL ends an event's rows at their first GEOMETRY."""
    return (
        len(official) == 1
        and bool(re.fullmatch(r"###   @\d+=!! Don't know how .* type=255 .*", official[0]))
        and all(line.startswith("###") for line in ours)
        and any("/* GEOMETRY meta=4 " in line for line in ours)
    )


def is_of_encryption(official: Sequence[str], ours: Sequence[str]) -> bool:
    """These texts were read from a server, which says less of an encrypted log than its file."""
    told = ["# Encryption scheme: 1, key_version: 1, nonce: ", "# The rest of the binlog is"]
    is_start = (
        len(official) == 2
        and official[1] == "# Ignorable event type 164 (Start_encryption)"
        and all(line.startswith(start) for line, start in zip(ours, told, strict=True))
    )
    is_stop = not official and len(ours) == 2 and ours[1].endswith("\tStop")
    return is_start or is_stop


DIFFERENCES: Final[dict[str, Callable[[Sequence[str], Sequence[str]], bool]]] = {
    **dict.fromkeys(
        (
            "md1011_metadata_full",
            "md1011_metadata_minimal",
            "md1011_metadata_no_log",
            "md1011_types_geometry",
            "md118_metadata_full",
        ),
        is_right_row_count,
    ),
    **dict.fromkeys(
        ("md1011_types_flavour", "md118_types_flavour"),
        lambda official, ours: is_right_row_count(official, ours) or is_type_name(official, ours),
    ),
    "md1011_types_temporal_old": is_type_name,
    **dict.fromkeys(
        ("my97_metadata_full", "my97_metadata_minimal", "my97_types_geometry"), is_geometry
    ),
    **dict.fromkeys(("md1011_encrypted", "my97_encrypted"), is_of_encryption),
}


def check(name: str, kind: str, options: TextOptions, load_directory: Path) -> None:
    fixtures = fixture_set(name)
    if name.endswith("_encrypted"):
        options = replace(options, print_table_metadata=False)
    for number, (file, theirs) in enumerate(texts(fixtures, kind)):
        directory = load_directory / str(number)
        directory.mkdir()
        ours = rendered(plain(fixtures, file), replace(options, load_directory=directory))
        ours, official = without_file_names(ours), without_file_names(theirs)
        if ours == official:
            continue
        assert name in DIFFERENCES, first_difference(official, ours)
        for tag, start, end, our_start, our_end in SequenceMatcher(
            None, official, ours, autojunk=False
        ).get_opcodes():
            hunk = official[start:end], ours[our_start:our_end]
            assert tag == "equal" or DIFFERENCES[name](*hunk), hunk


def without_file_names(lines: list[str]) -> list[str]:
    return [_LOAD_FILE.sub(r"'\1'", line) for line in lines]


def first_difference(official: list[str], ours: list[str]) -> str:
    pairs = zip([*official, ""], [*ours, ""], strict=False)
    return next((f"{one!r}\nis for us\n{other!r}" for one, other in pairs if one != other), "")


def sets_with(kind: str) -> list[object]:
    return [
        pytest.param(name, marks=pytest.mark.slow) if name in _LARGE else name
        for name in fixture_names()
        if name.startswith(("md", "my"))
        and name != _HIRES
        and any(path.endswith(f".{kind}.txt") for path in fixture_set(name).files)
    ]


@pytest.mark.rule("001:readable")
@pytest.mark.parametrize("name", sets_with("auto"))
def test_default_text(name: str, tmp_path: Path) -> None:
    check(name, "auto", DEFAULT, tmp_path)


@pytest.mark.parametrize("name", sets_with("vv"))
def test_text_of_rows(name: str, tmp_path: Path) -> None:
    check(name, "vv", ROWS, tmp_path)


@pytest.mark.parametrize("name", sorted(DIFFERENCES))
def test_every_difference_is_one(name: str, tmp_path: Path) -> None:
    """A difference that is none any more must leave the list, and the documentation."""
    fixtures, found = fixture_set(name), False
    for kind, options in (("auto", DEFAULT), ("vv", ROWS)):
        for file, official in texts(fixtures, kind):
            ours = rendered(plain(fixtures, file), replace(options, load_directory=tmp_path))
            found |= ours != official
    assert found

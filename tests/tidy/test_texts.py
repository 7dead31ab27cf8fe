"""The repository speaks of itself only: no machine it was made on, no unfinished work."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.rules import ROOT

FORBIDDEN = {
    "a path of somebody's machine": re.compile(r"(?<![\w.])/(?:home|root|Users)/[a-z]"),
    "unfinished work": re.compile(r"\b(?:TODO|FIXME|XXX)\b"),
    "a download host in a lock": re.compile(
        r"^(?:--index-url|--extra-index-url|--find-links)", re.MULTILINE
    ),
}
EXEMPT = {"tests/tidy/test_texts.py"}


def _texts() -> dict[str, str]:
    """Contents of all text files that are, or would be, in version control."""
    listed = subprocess.run(
        [
            *("git", "-c", "safe.directory=*", "ls-files"),
            *("--cached", "--others", "--exclude-standard", "-z"),
        ],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    texts = {}
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if name not in EXEMPT and path.is_file() and b"\0" not in (data := path.read_bytes()):
            texts[name] = data.decode("utf-8", "replace")
    return texts


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str) -> None:
    found = {
        name: match[0] for name, text in _texts().items() if (match := FORBIDDEN[what].search(text))
    }
    assert found == {}


def test_locks_pin_everything_with_a_hash() -> None:
    for lock in (ROOT / "requirements").glob("*.lock"):
        entries = re.split(r"\n(?=[a-z])", lock.read_text())[1:]
        assert entries, f"{lock.name} is empty"
        assert [entry.split()[0] for entry in entries if "==" not in entry] == []
        assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []

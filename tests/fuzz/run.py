"""Fuzz one target by coverage: `python -m tests.fuzz.run TARGET [libFuzzer options]`.

The corpus begins with the target's seeds; what is found stays in `.run/fuzz/TARGET`. An input that
breaks a target is written to `.run/fuzz` and the exit status is not 0: make it a test.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # it brings no types

with atheris.instrument_imports(include=["binlane"]):
    from tests.fuzz.targets import TARGETS

_CORPUS = Path(".run/fuzz")
# A decoder that needs more for an input of at most 64 KB believes a count that lies, or hangs.
_LIMITS = ("-rss_limit_mb=1024", "-timeout=20", "-max_len=65536")


def main() -> None:
    """Run until libFuzzer's options say to stop, or an input breaks the target."""
    name, *options = sys.argv[1:]
    target = TARGETS[name]
    corpus = _CORPUS / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / sha256(seed).hexdigest()[:16]).write_bytes(seed)
    arguments = [sys.argv[0], str(corpus), f"-artifact_prefix={_CORPUS}/{name}-", *_LIMITS]
    atheris.Setup([*arguments, *options], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

"""`./run demo` on a Debian that has nothing but git and python3.

A machine on which people develop hides what is missing; hence a root of its own. Debian's mirrors
and pip's index are those that this machine's settings name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.rules import ROOT

_RELEASE: Final = "bookworm"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_ON: Final = ("PIP_", "http_proxy", "https_proxy", "no_proxy")
_ALONE: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
_HOME: Final = "/root"
_CERTIFICATES: Final = "etc/certificates.pem"
_TEST: Final = "./run test tests/unit/codec"
_FORGET_KERNELS: Final = "rm -f .venv/kernels.stamp src/binlane/kernels/_compiled_*"
# Processes and mounts of the root end with the first process of it: also what compiles kernels.
_INSIDE: Final = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec chroot "$1" sh -c "$2"
"""


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _sources() -> list[str]:
    """Where this machine gets the release from: `URI SUITE COMPONENT`."""
    found = _output("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)")
    return [line for line in dict.fromkeys(found.splitlines()) if f" {_RELEASE}" in line]


def _in(root: Path, command: str, environment: Mapping[str, str], timeout_s: float) -> str:
    """Run a command in a root; its output, standard error included."""
    done = subprocess.run(
        [*_ALONE, "sh", "-ec", _INSIDE, "sh", str(root), command],
        env={"HOME": _HOME, "PATH": _PATH, "TERM": "dumb", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def _settings_of_pip(root: Path) -> dict[str, str]:
    """The settings of pip here, brought into the root as variables; its certificates as a file."""
    passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
    listed = _output(sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list")
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.partition(".")
        if section in {"global", "install"}:
            passed.setdefault(f"PIP_{key.upper().replace('-', '_')}", value.strip("'\""))
    if certificates := passed.get("PIP_CERT"):
        shutil.copyfile(certificates, root / _CERTIFICATES)
        passed["PIP_CERT"] = f"/{_CERTIFICATES}"
    return passed


@pytest.fixture
def bare_root(tmp_path: Path) -> Path:
    """The smallest Debian, with git and python3."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a root")
    if missing := [
        each for each in ("debootstrap", "unshare", "apt-get") if not shutil.which(each)
    ]:
        pytest.skip(f"missing: {', '.join(missing)}")
    if not (sources := _sources()):
        pytest.skip(f"this machine's apt knows no {_RELEASE}")
    root = tmp_path / "root"
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", _RELEASE, str(root), sources[0].split()[0]],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if made.returncode:
        pytest.skip(f"no mirror was reached: {made.stdout.strip().splitlines()[-1:]}")
    lines = "".join(f"deb {source}\n" for source in sources)
    (root / "etc/apt/sources.list").write_text(lines)
    settings = [line for line in _output("apt-config", "dump").splitlines() if "Acquire" in line]
    (root / "etc/apt/apt.conf.d/90machine").write_text("\n".join(settings) + "\n")
    for name in ("resolv.conf", "hosts"):
        shutil.copyfile(f"/etc/{name}", root / "etc" / name)
    install = "apt-get -qq install --yes --no-install-recommends git python3"
    _in(root, f"export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && {install}", {}, 900)
    return root


@pytest.mark.slow
def test_the_demo_on_a_bare_machine(bare_root: Path) -> None:
    _output("git", "clone", "--quiet", str(ROOT), f"{bare_root}{_HOME}/binlane")
    settings = _settings_of_pip(bare_root)
    shown = _in(bare_root, "cd ~/binlane && ./run demo", settings, 1200)
    assert "  Installing python3-venv" in shown
    assert "  Compiling the kernels, which make large logs fast, beside" in shown
    last = shown.strip().splitlines()[-1]
    assert "checks held" in last
    # Nothing but the rest of the kernels is waited for from now on.
    shown = _in(bare_root, f"cd ~/binlane && {_TEST}", settings, 1200)
    assert " passed in " in shown.strip().splitlines()[-1]
    assert "without kernels" not in shown
    # Though python3-venv came with an update of Python itself.
    assert "Making .venv" not in shown
    hidden = f"cd ~/binlane && {_FORGET_KERNELS}; chmod a-x /usr/bin/*gcc*; {_TEST} && {_TEST}"
    shown = _in(bare_root, hidden, settings, 1200)
    assert shown.count(" passed in ") == 2
    assert shown.count("run: all works without kernels, large logs take longer") == 1

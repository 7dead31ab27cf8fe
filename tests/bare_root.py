"""A Debian of its own that has nothing but git and python3, in a folder.

A machine on which people develop hides what is missing. Debian's mirrors and pip's index are those
that this machine's settings name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.rules import ROOT

_RELEASE: Final = "bookworm"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PASSED_ON: Final = ("PIP_", "http_proxy", "https_proxy", "no_proxy")
_ALONE: Final = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
HOME: Final = "/root"
_CERTIFICATES: Final = "etc/certificates.pem"
# Processes and mounts of the root end with the first process of it: also what compiles kernels.
_INSIDE: Final = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
exec chroot "$1" sh -c "$2"
"""


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _sources() -> list[str]:
    """Where this machine gets the release from: `URI SUITE COMPONENT`."""
    found = output("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)")
    return [line for line in dict.fromkeys(found.splitlines()) if f" {_RELEASE}" in line]


def run_in(root: Path, command: str, environment: Mapping[str, str], timeout_s: float) -> str:
    """Run a command in a root; its output, standard error included."""
    done = subprocess.run(
        [*_ALONE, "sh", "-ec", _INSIDE, "sh", str(root), command],
        env={"HOME": HOME, "PATH": _PATH, "TERM": "dumb", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def settings_of_pip(root: Path) -> dict[str, str]:
    """The settings of pip here, brought into the root as variables; its certificates as a file."""
    passed = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
    listed = output(sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list")
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.partition(".")
        if section in {"global", "install"}:
            passed.setdefault(f"PIP_{key.upper().replace('-', '_')}", value.strip("'\""))
    if certificates := passed.get("PIP_CERT"):
        shutil.copyfile(certificates, root / _CERTIFICATES)
        passed["PIP_CERT"] = f"/{_CERTIFICATES}"
    return passed


class NoRootError(Exception):
    """No such root can be made here; why."""


def make_root(root: Path) -> None:
    """Make the smallest Debian with git and python3, and a clone of this repository in it.

    Raises:
        NoRootError: If something lacks that this needs.
    """
    if os.geteuid() != 0:
        raise NoRootError("only root can make a root")
    if missing := [
        each for each in ("debootstrap", "unshare", "apt-get") if not shutil.which(each)
    ]:
        raise NoRootError(f"missing: {', '.join(missing)}")
    if not (sources := _sources()):
        raise NoRootError(f"this machine's apt knows no {_RELEASE}")
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", _RELEASE, str(root), sources[0].split()[0]],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    if made.returncode:
        raise NoRootError(f"no mirror was reached: {made.stdout.strip().splitlines()[-1:]}")
    lines = "".join(f"deb {source}\n" for source in sources)
    (root / "etc/apt/sources.list").write_text(lines)
    settings = [line for line in output("apt-config", "dump").splitlines() if "Acquire" in line]
    (root / "etc/apt/apt.conf.d/90machine").write_text("\n".join(settings) + "\n")
    for name in ("resolv.conf", "hosts"):
        shutil.copyfile(f"/etc/{name}", root / "etc" / name)
    install = "apt-get -qq install --yes --no-install-recommends git python3"
    run_in(root, f"export DEBIAN_FRONTEND=noninteractive; apt-get -qq update && {install}", {}, 900)
    output("git", "clone", "--quiet", str(ROOT), f"{root}{HOME}/binlane")

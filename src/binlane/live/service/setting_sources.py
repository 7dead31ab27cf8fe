"""Values that somebody set: the configuration file, and environment variables above it.

Each value is held against the kind of its key; what cannot be used is collected, so that all of it
is told at once. What the values may be is not known here.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from binlane.errors import ConfigError
from binlane.live.service.setting_keys import KEYS, PATH, VARIABLE_PREFIX, setting_of, variable_of

FROM_FILE: Final = "file"
FROM_OPTION: Final = "command line"

_NEAR: Final = 0.4
_SAME_BUT_FOR_A_SLIP: Final = 0.85
_SETTINGS: Final = [setting_of(section, key) for section in KEYS for key in KEYS[section]]
_VARIABLES: Final = {
    variable_of(section, key): (section, key) for section in KEYS for key in KEYS[section]
}


@dataclass(slots=True)
class SettingValues:
    """Values by section and key, as TOML has them, of the right kinds.

    Attributes:
        values: Section → key → value; a section is there where the file has it, or one of its keys
            was set. Relative paths of the file count from its directory already.
        origins: Setting, such as `listen.port` → where its value comes from.
        problems: Errors for values that cannot be used.
        warnings: Likely slips, a sentence each.
    """

    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    problems: list[ConfigError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def set(self, section: str, key: str, value: object, origin: str) -> None:
        """Set a value, above an earlier one."""
        self.values.setdefault(section, {})[key] = value
        self.origins[setting_of(section, key)] = origin


def read_document(path: Path) -> dict[str, Any]:
    """The file as TOML has it.

    Raises:
        ConfigError: If it cannot be read, or is no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}",
            key="--config",
            hint="name the file with --config; docs/reference/settings.md shows one",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is no TOML: {error}", key="--config") from None


def take_document(given: SettingValues, document: Mapping[str, Any], base: Path) -> None:
    """Take the values of a file.

    Args:
        given: Gets the values of the file.
        document: The document that `read_document` gives.
        base: The directory that the file's relative paths count from.
    """
    for name, value in document.items():
        if name in KEYS[""]:
            _take(given, "", name, value, base)
        elif isinstance(value, dict) and name in KEYS:
            given.values.setdefault(name, {})
            for key, inner in value.items():
                _take(given, name, key, inner, base)
        elif name in KEYS:
            given.problems.append(
                ConfigError(
                    f"{value!r} stands where a section is wanted",
                    key=name,
                    hint=f"write [{name}], and below it KEY = VALUE",
                )
            )
        else:
            given.problems.append(_unknown("", name))


def take_environment(given: SettingValues, environ: Mapping[str, str], base: Path) -> None:
    """Take the values of environment variables; one that is empty says nothing.

    Args:
        given: Gets the values of the variables.
        environ: All variables of the environment.
        base: The directory that relative paths count from.
    """
    for name, text in sorted(environ.items()):
        if not name.startswith(VARIABLE_PREFIX) or not text:
            continue
        if name in _VARIABLES:
            _take_text(given, name, text, base)
        elif _is_meant_as_setting(name):
            near = _nearest(name, _VARIABLES)
            given.warnings.append(
                f"the environment variable {name} sets nothing" + (f": {near}" if near else "")
            )


def _take(given: SettingValues, section: str, key: str, value: object, base: Path) -> None:
    setting = setting_of(section, key)
    if key not in KEYS[section]:
        given.problems.append(_unknown(section, key))
        return
    kind = KEYS[section][key].kind
    if not kind.is_one(value):
        given.problems.append(
            ConfigError(
                f"{value!r} has the wrong type", key=setting, hint=f"{kind.name} is wanted here"
            )
        )
        return
    given.set(section, key, str(base / str(value)) if kind is PATH else value, FROM_FILE)


def _take_text(given: SettingValues, name: str, text: str, base: Path) -> None:
    section, key = _VARIABLES[name]
    kind = KEYS[section][key].kind
    try:
        value = kind.read(text)
    except (ValueError, OverflowError):
        value = None
    if value is None or not kind.is_one(value):
        given.problems.append(
            ConfigError(
                f"{text!r} has the wrong type", key=name, hint=f"{kind.name} is wanted here"
            )
        )
        return
    given.set(section, key, str(base / str(value)) if kind is PATH else value, name)


def _unknown(section: str, key: str) -> ConfigError:
    setting = setting_of(section, key)
    if not section and (near := difflib.get_close_matches(key, [*KEYS, *KEYS[""]], n=1)):
        return ConfigError("unknown setting", key=setting, hint=f"did you mean {near[0]}?")
    # It may be right but for its section, which then is the one to name.
    homes = [setting_of(home, key) for home in KEYS if key in KEYS[home]]
    hint = f"did you mean {' or '.join(homes)}?" if homes else _nearest(setting, _SETTINGS)
    return ConfigError(
        "unknown setting", key=setting, hint=hint or "known are " + ", ".join(_SETTINGS)
    )


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=_NEAR)
    return f"did you mean {near[0]}?" if near else ""


def _is_meant_as_setting(name: str) -> bool:
    sections = [VARIABLE_PREFIX + section.upper() + "_" for section in KEYS if section]
    return name.startswith(tuple(sections)) or bool(
        difflib.get_close_matches(name, list(_VARIABLES), n=1, cutoff=_SAME_BUT_FOR_A_SLIP)
    )

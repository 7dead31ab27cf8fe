"""Django's tests of its database backends and of what stands on them, by PyMySQL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.suites.packages import pypi_source
from tests.suites.places import Place
from tests.suites.programs import printed
from tests.suites.pythons import environment, told
from tests.suites.suites import Suite

_VERSION: Final = "5.2.8"
_SCOPE: Final = "test_django_default, test_django_other"
_TESTS: Final = (
    "backends",
    "introspection",
    "transactions",
    "transaction_hooks",
    "schema",
    "bulk_create",
    "constraints",
    "delete",
    "get_or_create",
    "inspectdb",
    "multiple_database",
    "select_for_update",
    "update",
)
_SETTINGS: Final = """
import pymysql
pymysql.version_info = (2, 2, 1, "final", 0)
pymysql.install_as_MySQLdb()
DATABASES = {{
    name: {{
        "ENGINE": "django.db.backends.mysql",
        "NAME": f"django_{{name}}",
        "USER": "root",
        "HOST": "127.0.0.1",
        "PORT": {port},
        "TEST": {{"CHARSET": "utf8mb4"}},
        # Django's own choice is READ COMMITTED, with which no server logs statements (1665).
        "OPTIONS": {{"isolation_level": "repeatable read"}},
    }}
    for name in ("default", "other")
}}
SECRET_KEY = "tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""
_OUTCOME: Final = re.compile(
    r"^(?P<name>\w+ \([\w.]+\))(?:\n.*?)?? \.\.\. .*?(?P<outcome>ok|FAIL|ERROR|skipped|expected failure)",
    re.MULTILINE | re.DOTALL,
)
_FAILED: Final = re.compile(
    r"^=+\n(?:FAIL|ERROR): (?P<name>\w+ \([\w.]+\)).*?\n-+\n(?P<trace>.*?)(?=\n\n=|\n\n-)",
    re.MULTILINE | re.DOTALL,
)


def _prepare(where: Place) -> None:
    """Its tests make what they need."""


def _run(where: Place, directory: Path) -> dict[str, str]:
    """Run its tests at a place; what came of each."""
    (source,) = pypi_source("django", _VERSION).glob("django-*")
    python = environment("django", "asgiref==3.11.0", "sqlparse==0.5.3", "PyMySQL==1.1.2")
    (directory / "suite_settings.py").write_text(_SETTINGS.format(port=where.port))
    _, text = printed(
        [
            *(str(python), "runtests.py", "--settings=suite_settings", "--parallel=1", "--noinput"),
            *("--verbosity=2", *_TESTS),
        ],
        source / "tests",
        {"PYTHONPATH": f"{directory}:{source}", "PYTHONDONTWRITEBYTECODE": "1"},
        timeout_s=1500,
    )
    (directory / "printed").write_text(text)
    outcomes = {found["name"]: found["outcome"] for found in _OUTCOME.finditer(text)}
    for found in _FAILED.finditer(text):
        outcomes[found["name"]] = told("failed", found["trace"].rstrip().rpartition("\n")[2])
    assert len(outcomes) > 100, text[-3000:]
    return outcomes


DJANGO: Final = Suite(
    name="Django",
    version=_VERSION,
    scope=_SCOPE,
    prepare=_prepare,
    run=_run,
)

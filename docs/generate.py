"""Write the pages that follow from the code: the command line and the rule ledger.

Run as `python -m docs.generate` from the repository's root. The pages are not in version control,
so they cannot fall behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from binlane.cli.main import binlane
from tests.rules import Rule, load_rules, proofs

HERE = Path(__file__).parent
SEEDS = {
    "000": "Binlog scope (MariaDB Xpand)",
    "001": "Binary log formats (MariaDB)",
    "002": "Logging format by engine (MySQL WL#3303)",
    "003": "Tables info in Query events (MariaDB WL#40)",
    "004": "Logging of statements and transactions (MySQL internals)",
}


def main() -> None:
    """Write all generated pages."""
    for name, page in (("reference/cli.md", command_line()), ("rules.md", ledger())):
        (HERE / name).write_text(page + "\n")
        print(f"wrote docs/{name}")


def command_line() -> str:
    """The page of all commands: what each prints for `--help`."""
    context = click.Context(binlane, info_name="binlane", max_content_width=100)
    parts = [
        "# Command line",
        (
            "Exit status: 0 done; 1 the thing looked at is wrong; 2 wrong usage; 3 a server or a disk"
            " could not be used; 130 interrupted. Results go to standard output, everything else to"
            " standard error."
        ),
        *_help(binlane, context),
    ]
    return "\n\n".join(parts)


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## `{context.command_path}`"
    yield f"```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, f"{name} is listed and missing"
            yield from _help(
                child,
                click.Context(
                    child,
                    info_name=name,
                    parent=context,
                    max_content_width=100,
                    **child.context_settings,
                ),
            )


def ledger() -> str:
    """The page of all rules with their status and tests."""
    rules = load_rules()
    counts = Counter(rule.status for rule in rules)
    parts = [
        "# Rules",
        (
            "Every rule of the seed documents that binlane is built from. *done* and *partial* mean that"
            " the tests named prove it; a partial rule does not hold in every way that it speaks of."
            " Tests that carry no rule's mark prove much more; they are not listed here."
        ),
        f"**{counts['done']} done, {counts['partial']} partial, {counts['planned']} planned.**",
    ]
    for seed, members in groupby(rules, key=lambda rule: rule.id[:3]):
        parts += [f"## {seed}: {SEEDS[seed]}", _table(list(members))]
    return "\n\n".join(parts)


def _table(rules: list[Rule]) -> str:
    lines = ["| rule | status | what it says | proved by |", "|---|---|---|---|"]
    for rule in rules:
        # Cases of one test function are one proof.
        tests = sorted({node.split("[")[0] for node in proofs().get(rule.id, ())})
        proved = "<br>".join(f"`{test}`" for test in tests)
        said = f"{rule.text} *{rule.reason}*" if rule.reason else rule.text
        text = said.replace("|", "\\|")
        lines.append(f"| `{rule.id}` | {rule.status} | {text} | {proved} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

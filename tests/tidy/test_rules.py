"""Every rule of the seeds has a status that is true."""

from __future__ import annotations

from collections import Counter

from tests.rules import STATUSES, load_rules, proofs


def test_no_rule_stands_twice() -> None:
    assert [id_ for id_, n in Counter(rule.id for rule in load_rules()).items() if n > 1] == []


def test_every_rule_has_a_known_status_and_a_text() -> None:
    assert [rule.id for rule in load_rules() if rule.status not in STATUSES or not rule.text] == []


def test_what_is_not_done_says_why() -> None:
    assert [rule.id for rule in load_rules() if (rule.status == "done") == bool(rule.reason)] == []


def test_every_mark_names_a_rule() -> None:
    known = {rule.id for rule in load_rules()}
    assert {rule: tests for rule, tests in proofs().items() if rule not in known} == {}


def test_what_is_done_is_proved() -> None:
    claimed = {rule.id for rule in load_rules() if rule.status != "planned"}
    assert claimed - proofs().keys() == set()


def test_what_is_proved_is_not_called_planned() -> None:
    planned = {rule.id for rule in load_rules() if rule.status == "planned"}
    assert planned & proofs().keys() == set()

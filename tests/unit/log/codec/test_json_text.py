from __future__ import annotations

import json
from decimal import Decimal

import pytest

from binlane.log.codec.json_text import json_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, 1.5, True, None, "é"]}, '{"a": [1, 1.5, true, null, "é"]}'),
        (
            [Decimal("1.10"), Decimal("-0." + "1" * 30), 2**64 - 1],
            f"[1.10, -0.{'1' * 30}, {2**64 - 1}]",
        ),
        (b"\x00\xff", '{"base64": "AP8="}'),
        ({"q": "caf\udce9", "n": ("x", 1)}, '{"q": {"base64": "Y2Fm6Q=="}, "n": ["x", 1]}'),
        ({"caf\udce9": 1}, r'{"caf\\xe9": 1}'),
        (float("inf"), '"inf"'),
        ([Decimal(1), "\n\u2028", {"": {}}], '[1, "\\n\u2028", {"": {}}]'),
    ],
)
def test_everything_that_a_line_may_hold_is_json(value: object, text: str) -> None:
    assert json_text(value) == text
    json.loads(text)
    text.encode()


def test_what_is_no_value_is_an_error() -> None:
    with pytest.raises(TypeError):
        json_text(object())

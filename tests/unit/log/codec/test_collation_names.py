from __future__ import annotations

import pytest

from binlane.log.codec.charsets import charset_of
from binlane.log.codec.collation_names import collation_name
from binlane.log.codec.types import Flavor


@pytest.mark.parametrize(
    ("collation_id", "mariadb", "mysql"),
    [
        (8, "latin1_swedish_ci", "latin1_swedish_ci"),
        (63, "binary", "binary"),
        (245, "utf8mb4_croatian_mysql561_ci", "utf8mb4_croatian_ci"),
        (255, "utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci"),
        (1032, "latin1_swedish_nopad_ci", None),
        (1070, "utf8mb4_nopad_bin", None),
        (2304, "utf8mb4_uca1400_ai_ci", None),
        (2063, "utf8mb3_uca1400_icelandic_nopad_as_cs", None),
        (2048 + 21 * 8, None, None),
        (4000, None, None),
    ],
)
def test_names(collation_id: int, mariadb: str | None, mysql: str | None) -> None:
    assert collation_name(collation_id, Flavor.MARIADB) == mariadb
    assert collation_name(collation_id, Flavor.MYSQL) == mysql


@pytest.mark.parametrize("flavor", Flavor)
def test_a_name_begins_with_its_character_set(flavor: Flavor) -> None:
    names = {number: collation_name(number, flavor) for number in range(1, 4096)}
    found = {number: name for number, name in names.items() if name is not None}
    assert len(found) > 280
    assert all(name.split("_")[0] == charset_of(number) for number, name in found.items())

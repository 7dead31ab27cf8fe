"""The numbers that status variables have in the places of names: of modes, locales and collations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from binlane.log.codec.collation_names import collation_name
from binlane.log.codec.types import Flavor

_COLLATIONS_MAX: Final = 4096

_MODES: Final = (
    *("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE"),
    *("IGNORE_BAD_TABLE_OPTIONS", "ONLY_FULL_GROUP_BY", "NO_UNSIGNED_SUBTRACTION"),
    *("NO_DIR_IN_CREATE", "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB", "NO_KEY_OPTIONS"),
    *("NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40", "ANSI"),
    *("NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES"),
    *("STRICT_ALL_TABLES", "NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES"),
    *("ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL", "NO_AUTO_CREATE_USER"),
    *("HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH"),
)
"""Modes of both flavors, by their bits from 0 on."""
_OWN_MODES: Final[Mapping[Flavor, Sequence[str]]] = MappingProxyType(
    {
        Flavor.MARIADB: (
            "EMPTY_STRING_IS_NULL",
            "SIMULTANEOUS_ASSIGNMENT",
            "TIME_ROUND_FRACTIONAL",
        ),
        Flavor.MYSQL: ("TIME_TRUNCATE_FRACTIONAL", "INTERPRET_UTF8_AS_UTF8MB4"),
    }
)
"""The modes from bit 32 on, in which the flavors differ."""
_MODE_BITS: Final[Mapping[Flavor, Mapping[str, int]]] = MappingProxyType(
    {
        flavor: MappingProxyType(
            {name: 1 << bit for bit, name in enumerate((*_MODES, *own))} | {"NOT_USED": 1 << 4}
        )
        for flavor, own in _OWN_MODES.items()
    }
)

_LOCALES: Final = (
    *("en_US", "en_GB", "ja_JP", "sv_SE", "de_DE", "fr_FR", "ar_AE", "ar_BH", "ar_JO", "ar_SA"),
    *("ar_SY", "be_BY", "bg_BG", "ca_ES", "cs_CZ", "da_DK", "de_AT", "es_ES", "et_EE", "eu_ES"),
    *("fi_FI", "fo_FO", "gl_ES", "gu_IN", "he_IL", "hi_IN", "hr_HR", "hu_HU", "id_ID", "is_IS"),
    *("it_CH", "ko_KR", "lt_LT", "lv_LV", "mk_MK", "mn_MN", "ms_MY", "nb_NO", "nl_NL", "pl_PL"),
    *("pt_BR", "pt_PT", "ro_RO", "ru_RU", "ru_UA", "sk_SK", "sl_SI", "sq_AL", "sr_RS", "ta_IN"),
    *("te_IN", "th_TH", "tr_TR", "uk_UA", "ur_PK", "vi_VN", "zh_CN", "zh_TW", "ar_DZ", "ar_EG"),
    *("ar_IN", "ar_IQ", "ar_KW", "ar_LB", "ar_LY", "ar_MA", "ar_OM", "ar_QA", "ar_SD", "ar_TN"),
    *("ar_YE", "de_BE", "de_CH", "de_LU", "en_AU", "en_CA", "en_IN", "en_NZ", "en_PH", "en_ZA"),
    *("en_ZW", "es_AR", "es_BO", "es_CL", "es_CO", "es_CR", "es_DO", "es_EC", "es_GT", "es_HN"),
    *("es_MX", "es_NI", "es_PA", "es_PE", "es_PR", "es_PY", "es_SV", "es_US", "es_UY", "es_VE"),
    *("fr_BE", "fr_CA", "fr_CH", "fr_LU", "it_IT", "nl_BE", "no_NO", "sv_FI", "zh_HK", "el_GR"),
    *("rm_CH", "ka_GE", "sw_KE"),
)
"""Values of lc_time_names by their numbers, as `SET lc_time_names=N` tells of MariaDB 11.8 and MySQL 9.7."""
LOCALE_NUMBERS: Final = MappingProxyType({name: number for number, name in enumerate(_LOCALES)})


@cache
def collation_id(name: str, flavor: Flavor) -> int | None:
    """Return the id of a collation that comes with the servers; None for another one."""
    return _collation_ids(flavor).get(name)


@cache
def _collation_ids(flavor: Flavor) -> Mapping[str, int]:
    names = ((number, collation_name(number, flavor)) for number in range(1, _COLLATIONS_MAX))
    return {name: number for number, name in names if name is not None}


def sql_mode_bits(text: str, flavor: Flavor) -> int | None:
    """The bits of sql_mode; None where one of its words is not known."""
    bits = 0
    for name in filter(None, text.split(",")):
        bit = _MODE_BITS[flavor].get(name)
        if bit is None:
            return None
        bits |= bit
    return bits

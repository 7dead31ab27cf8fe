"""Names of collations, by id: data only.

Source: information_schema of MariaDB 11.8 and MySQL 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from binlane.log.codec.types import Flavor

# MariaDB's NOPAD collations are those of the same name plus 1024.
_NOPAD: Final = 1024
# MariaDB computes the ids of its UCA 14.0.0 collations: character set, language, three switches.
_UCA1400: Final = 2048
_UCA1400_CHARSETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA1400_LANGUAGES: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "",
        1: "icelandic",
        2: "latvian",
        3: "romanian",
        4: "slovenian",
        5: "polish",
        6: "estonian",
        7: "spanish",
        8: "swedish",
        9: "turkish",
        10: "czech",
        11: "danish",
        12: "lithuanian",
        13: "slovak",
        14: "spanish2",
        15: "roman",
        16: "persian",
        17: "esperanto",
        18: "hungarian",
        19: "sinhala",
        20: "german2",
        23: "vietnamese",
        24: "croatian",
    }
)
# Character set → id and rest of the name of each of its collations.
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "armscii8": "32:general_ci 64:bin",
        "ascii": "11:general_ci 65:bin",
        "big5": "1:chinese_ci 84:bin",
        "cp1250": "26:general_ci 34:czech_cs 44:croatian_ci 66:bin 99:polish_ci",
        "cp1251": "14:bulgarian_ci 23:ukrainian_ci 50:bin 51:general_ci 52:general_cs",
        "cp1256": "57:general_ci 67:bin",
        "cp1257": "29:lithuanian_ci 58:bin 59:general_ci",
        "cp850": "4:general_ci 80:bin",
        "cp852": "40:general_ci 81:bin",
        "cp866": "36:general_ci 68:bin",
        "cp932": "95:japanese_ci 96:bin",
        "dec8": "3:swedish_ci 69:bin",
        "eucjpms": "97:japanese_ci 98:bin",
        "euckr": "19:korean_ci 85:bin",
        "gb18030": "248:chinese_ci 249:bin 250:unicode_520_ci",
        "gb2312": "24:chinese_ci 86:bin",
        "gbk": "28:chinese_ci 87:bin",
        "geostd8": "92:general_ci 93:bin",
        "greek": "25:general_ci 70:bin",
        "hebrew": "16:general_ci 71:bin",
        "hp8": "6:english_ci 72:bin",
        "keybcs2": "37:general_ci 73:bin",
        "koi8r": "7:general_ci 74:bin",
        "koi8u": "22:general_ci 75:bin",
        "latin1": (
            "5:german1_ci 8:swedish_ci 15:danish_ci 31:german2_ci 47:bin 48:general_ci "
            "49:general_cs 94:spanish_ci"
        ),
        "latin2": "2:czech_cs 9:general_ci 21:hungarian_ci 27:croatian_ci 77:bin",
        "latin5": "30:turkish_ci 78:bin",
        "latin7": "20:estonian_cs 41:general_ci 42:general_cs 79:bin",
        "macce": "38:general_ci 43:bin",
        "macroman": "39:general_ci 53:bin",
        "sjis": "13:japanese_ci 88:bin",
        "swe7": "10:swedish_ci 82:bin",
        "tis620": "18:thai_ci 89:bin",
        "ucs2": (
            "35:general_ci 90:bin 128:unicode_ci 129:icelandic_ci 130:latvian_ci "
            "131:romanian_ci 132:slovenian_ci 133:polish_ci 134:estonian_ci 135:spanish_ci "
            "136:swedish_ci 137:turkish_ci 138:czech_ci 139:danish_ci 140:lithuanian_ci "
            "141:slovak_ci 142:spanish2_ci 143:roman_ci 144:persian_ci 145:esperanto_ci "
            "146:hungarian_ci 147:sinhala_ci 148:german2_ci 149:croatian_ci "
            "150:unicode_520_ci 151:vietnamese_ci 159:general_mysql500_ci 640:croatian_ci "
            "641:myanmar_ci 642:thai_520_w2"
        ),
        "ujis": "12:japanese_ci 91:bin",
        "utf16": (
            "54:general_ci 55:bin 101:unicode_ci 102:icelandic_ci 103:latvian_ci "
            "104:romanian_ci 105:slovenian_ci 106:polish_ci 107:estonian_ci 108:spanish_ci "
            "109:swedish_ci 110:turkish_ci 111:czech_ci 112:danish_ci 113:lithuanian_ci "
            "114:slovak_ci 115:spanish2_ci 116:roman_ci 117:persian_ci 118:esperanto_ci "
            "119:hungarian_ci 120:sinhala_ci 121:german2_ci 122:croatian_ci "
            "123:unicode_520_ci 124:vietnamese_ci 672:croatian_ci 673:myanmar_ci "
            "674:thai_520_w2"
        ),
        "utf16le": "56:general_ci 62:bin",
        "utf32": (
            "60:general_ci 61:bin 160:unicode_ci 161:icelandic_ci 162:latvian_ci "
            "163:romanian_ci 164:slovenian_ci 165:polish_ci 166:estonian_ci 167:spanish_ci "
            "168:swedish_ci 169:turkish_ci 170:czech_ci 171:danish_ci 172:lithuanian_ci "
            "173:slovak_ci 174:spanish2_ci 175:roman_ci 176:persian_ci 177:esperanto_ci "
            "178:hungarian_ci 179:sinhala_ci 180:german2_ci 181:croatian_ci "
            "182:unicode_520_ci 183:vietnamese_ci 736:croatian_ci 737:myanmar_ci "
            "738:thai_520_w2"
        ),
        "utf8mb3": (
            "33:general_ci 76:tolower_ci 83:bin 192:unicode_ci 193:icelandic_ci 194:latvian_ci "
            "195:romanian_ci 196:slovenian_ci 197:polish_ci 198:estonian_ci 199:spanish_ci "
            "200:swedish_ci 201:turkish_ci 202:czech_ci 203:danish_ci 204:lithuanian_ci "
            "205:slovak_ci 206:spanish2_ci 207:roman_ci 208:persian_ci 209:esperanto_ci "
            "210:hungarian_ci 211:sinhala_ci 212:german2_ci 213:croatian_ci "
            "214:unicode_520_ci 215:vietnamese_ci 223:general_mysql500_ci 576:croatian_ci "
            "577:myanmar_ci 578:thai_520_w2 579:general1400_as_ci"
        ),
        "utf8mb4": (
            "45:general_ci 46:bin 224:unicode_ci 225:icelandic_ci 226:latvian_ci "
            "227:romanian_ci 228:slovenian_ci 229:polish_ci 230:estonian_ci 231:spanish_ci "
            "232:swedish_ci 233:turkish_ci 234:czech_ci 235:danish_ci 236:lithuanian_ci "
            "237:slovak_ci 238:spanish2_ci 239:roman_ci 240:persian_ci 241:esperanto_ci "
            "242:hungarian_ci 243:sinhala_ci 244:german2_ci 245:croatian_ci "
            "246:unicode_520_ci 247:vietnamese_ci 255:0900_ai_ci 256:de_pb_0900_ai_ci "
            "257:is_0900_ai_ci 258:lv_0900_ai_ci 259:ro_0900_ai_ci 260:sl_0900_ai_ci "
            "261:pl_0900_ai_ci 262:et_0900_ai_ci 263:es_0900_ai_ci 264:sv_0900_ai_ci "
            "265:tr_0900_ai_ci 266:cs_0900_ai_ci 267:da_0900_ai_ci 268:lt_0900_ai_ci "
            "269:sk_0900_ai_ci 270:es_trad_0900_ai_ci 271:la_0900_ai_ci 273:eo_0900_ai_ci "
            "274:hu_0900_ai_ci 275:hr_0900_ai_ci 277:vi_0900_ai_ci 278:0900_as_cs "
            "279:de_pb_0900_as_cs 280:is_0900_as_cs 281:lv_0900_as_cs 282:ro_0900_as_cs "
            "283:sl_0900_as_cs 284:pl_0900_as_cs 285:et_0900_as_cs 286:es_0900_as_cs "
            "287:sv_0900_as_cs 288:tr_0900_as_cs 289:cs_0900_as_cs 290:da_0900_as_cs "
            "291:lt_0900_as_cs 292:sk_0900_as_cs 293:es_trad_0900_as_cs 294:la_0900_as_cs "
            "296:eo_0900_as_cs 297:hu_0900_as_cs 298:hr_0900_as_cs 300:vi_0900_as_cs "
            "303:ja_0900_as_cs 304:ja_0900_as_cs_ks 305:0900_as_ci 306:ru_0900_ai_ci "
            "307:ru_0900_as_cs 308:zh_0900_as_cs 309:0900_bin 310:nb_0900_ai_ci "
            "311:nb_0900_as_cs 312:nn_0900_ai_ci 313:nn_0900_as_cs 314:sr_latn_0900_ai_ci "
            "315:sr_latn_0900_as_cs 316:bs_0900_ai_ci 317:bs_0900_as_cs 318:bg_0900_ai_ci "
            "319:bg_0900_as_cs 320:gl_0900_ai_ci 321:gl_0900_as_cs 322:mn_cyrl_0900_ai_ci "
            "323:mn_cyrl_0900_as_cs 608:croatian_ci 609:myanmar_ci 610:thai_520_w2 "
            "611:general1400_as_ci"
        ),
    }
)
# Ids whose name differs between the flavors: MariaDB has a newer Croatian collation, too.
_CROATIAN: Final = frozenset({122, 149, 181, 213, 245})
_BINARY: Final = 63


@cache
def collation_name(collation_id: int, flavor: Flavor) -> str | None:
    """Return the name of a collation, such as `utf8mb4_general_ci`; None if the id is unknown."""
    if collation_id == _BINARY:
        return "binary"
    if flavor is Flavor.MARIADB and collation_id >= _UCA1400:
        return _uca1400_name(collation_id - _UCA1400)
    if flavor is Flavor.MARIADB and collation_id in _CROATIAN:
        return (_names()[collation_id]).replace("croatian", "croatian_mysql561")
    name = _names().get(collation_id)
    if name is None and flavor is Flavor.MARIADB and collation_id > _NOPAD:
        name = _names().get(collation_id - _NOPAD)
        stem, _, end = (name or "").rpartition("_")
        return f"{stem}_nopad_{end}" if name else None
    return name


@cache
def _names() -> Mapping[int, str]:
    found = {}
    for charset, names in _NAMES.items():
        for entry in names.split():
            number, _, name = entry.partition(":")
            found[int(number)] = f"{charset}_{name}"
    return found


def _uca1400_name(number: int) -> str | None:
    charset, rest = divmod(number, 256)
    language, switches = divmod(rest, 8)
    if charset >= len(_UCA1400_CHARSETS) or language not in _UCA1400_LANGUAGES:
        return None
    parts = (
        _UCA1400_CHARSETS[charset],
        "uca1400",
        _UCA1400_LANGUAGES[language],
        "nopad" if switches & 4 else "",
        "as" if switches & 2 else "ai",
        "cs" if switches & 1 else "ci",
    )
    return "_".join(filter(None, parts))

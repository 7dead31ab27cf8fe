"""Single-byte character sets that Python has no codec for, as the servers map them: data only.

Each string holds the characters of the bytes 0x80 to 0xFF; below, all of them are ASCII. U+FFFE
stands for a byte that means nothing.

Source: CONVERT(byte USING utf32) on MariaDB 10.11, for every byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

UPPER_HALVES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "armscii8": (
            "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b"
            "\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97"
            "\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\u2741\xa7\u0589"
            ")(\xbb\xab\u2014.\u055d,-\u055f\u2026\u055c"
            "\u055b\u055e\u0531\u0561\u0532\u0562\u0533\u0563\u0534\u0564\u0535\u0565"
            "\u0536\u0566\u0537\u0567\u0538\u0568\u0539\u0569\u053a\u056a\u053b\u056b"
            "\u053c\u056c\u053d\u056d\u053e\u056e\u053f\u056f\u0540\u0570\u0541\u0571"
            "\u0542\u0572\u0543\u0573\u0544\u0574\u0545\u0575\u0546\u0576\u0547\u0577"
            "\u0548\u0578\u0549\u0579\u054a\u057a\u054b\u057b\u054c\u057c\u054d\u057d"
            "\u054e\u057e\u054f\u057f\u0550\u0580\u0551\u0581\u0552\u0582\u0553\u0583"
            "\u0554\u0584\u0555\u0585\u0556\u0586\u2019'"
        ),
        "dec8": (
            "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b"
            "\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97"
            "\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\xa1\xa2\xa3"
            "\ufffe\xa5\ufffe\xa7\xa4\xa9\xaa\xab\ufffe\ufffe\ufffe\ufffe"
            "\xb0\xb1\xb2\xb3\ufffe\xb5\xb6\xb7\ufffe\xb9\xba\xbb"
            "\xbc\xbd\ufffe\xbf\xc0\xc1\xc2\xc3\xc4\xc5\xc6\xc7"
            "\xc8\xc9\xca\xcb\xcc\xcd\xce\xcf\ufffe\xd1\xd2\xd3"
            "\xd4\xd5\xd6\u0152\xd8\xd9\xda\xdb\xdc\u0178\ufffe\xdf"
            "\xe0\xe1\xe2\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xeb"
            "\xec\xed\xee\xef\ufffe\xf1\xf2\xf3\xf4\xf5\xf6\u0153"
            "\xf8\xf9\xfa\xfb\xfc\xff\ufffe\ufffe"
        ),
        "geostd8": (
            "\u20ac\ufffe\u201a\ufffe\u201e\u2026\u2020\u2021\ufffe\u2030\ufffe\u2039"
            "\ufffe\ufffe\ufffe\ufffe\ufffe\u2018\u2019\u201c\u201d\u2022\u2013\u2014"
            "\ufffe\ufffe\ufffe\u203a\ufffe\ufffe\ufffe\ufffe\xa0\xa1\xa2\xa3"
            "\xa4\xa5\xa6\xa7\xa8\xa9\xaa\xab\xac\xad\xae\xaf"
            "\xb0\xb1\xb2\xb3\xb4\xb5\xb6\xb7\xb8\xb9\xba\xbb"
            "\xbc\xbd\xbe\xbf\u10d0\u10d1\u10d2\u10d3\u10d4\u10d5\u10d6\u10f1"
            "\u10d7\u10d8\u10d9\u10da\u10db\u10dc\u10f2\u10dd\u10de\u10df\u10e0\u10e1"
            "\u10e2\u10f3\u10e3\u10e4\u10e5\u10e6\u10e7\u10e8\u10e9\u10ea\u10eb\u10ec"
            "\u10ed\u10ee\u10f4\u10ef\u10f0\u10f5\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe"
            "\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe"
            "\ufffe\ufffe\ufffe\ufffe\ufffe\u2116\ufffe\ufffe"
        ),
        "hp8": (
            "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b"
            "\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97"
            "\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f\xa0\xc0\xc2\xc8"
            "\xca\xcb\xce\xcf\xb4\u02cb\u02c6\xa8\u02dc\xd9\xdb\u20a4"
            "\xaf\xdd\xfd\xb0\xc7\xe7\xd1\xf1\xa1\xbf\xa4\xa3"
            "\xa5\xa7\u0192\xa2\xe2\xea\xf4\xfb\xe1\xe9\xf3\xfa"
            "\xe0\xe8\xf2\xf9\xe4\xeb\xf6\xfc\xc5\xee\xd8\xc6"
            "\xe5\xed\xf8\xe6\xc4\xec\xd6\xdc\xc9\xef\xdf\xd4"
            "\xc1\xc3\xe3\xd0\xf0\xcd\xcc\xd3\xd2\xd5\xf5\u0160"
            "\u0161\xda\u0178\xff\xde\xfe\xb7\xb5\xb6\xbe\u2014\xbc"
            "\xbd\xaa\xba\xab\u25a0\xbb\xb1\ufffe"
        ),
        "keybcs2": (
            "\u010c\xfc\xe9\u010f\xe4\u010e\u0164\u010d\u011b\u011a\u0139\xcd"
            "\u013e\u013a\xc4\xc1\xc9\u017e\u017d\xf4\xf6\xd3\u016f\xda"
            "\xfd\xd6\xdc\u0160\u013d\xdd\u0158\u0165\xe1\xed\xf3\xfa"
            "\u0148\u0147\u016e\xd4\u0161\u0159\u0155\u0154\xbc\xa1\xab\xbb"
            "\u2591\u2592\u2593\u2502\u2524\u2561\u2562\u2556\u2555\u2563\u2551\u2557"
            "\u255d\u255c\u255b\u2510\u2514\u2534\u252c\u251c\u2500\u253c\u255e\u255f"
            "\u255a\u2554\u2569\u2566\u2560\u2550\u256c\u2567\u2568\u2564\u2565\u2559"
            "\u2558\u2552\u2553\u256b\u256a\u2518\u250c\u2588\u2584\u258c\u2590\u2580"
            "\u03b1\xdf\u0393\u03c0\u03a3\u03c3\xb5\u03c4\u03a6\u0398\u03a9\u03b4"
            "\u221e\u03c6\u03b5\u2229\u2261\xb1\u2265\u2264\u2320\u2321\xf7\u2248"
            "\xb0\u2219\xb7\u221a\u207f\xb2\u25a0\xa0"
        ),
    }
)

"""Random SQL with what may lead a reader astray: comments, hints, quotes, odd characters."""

from __future__ import annotations

import random
from dataclasses import dataclass

TABLES = tuple(f"silver.t{number}" for number in range(6))
# Nobody has such functions, so each reader must take them for calls of unknown ones.
FUNCTIONS = tuple(f"f{number}" for number in range(6))
_NOISE = (
    *(" ", "\n", "\r\n", "\r", "\t", "\f", "\v", "\u00a0", "\u2028", "\u3000", "\ufeff", "\x00"),
    *("--", "-- c\n", "-- '\n", "-- \\\n", "-- \\\r\n", "--\r", "---", "- -", "-- /*\n", "-- */"),
    *("/*", "*/", "/*+", "/* c */", "/**/", "/*/", "/* /* */ */", "/* /*+ */", "/* ' */", "*//*"),
    *("/*+ COALESCE(1) */", "/*+ BROADCAST(a) */", "/*+ '*/' */", "/*+ -- */\n", "/ *", "* /"),
    *("'", '"', "`", "''", '""', "``", "'--'", "'/*'", "'*/'", '"--"', "`--`", "`/*`", "'a''b'"),
    *("'\\'", "'\\''", "'\\\\'", "r'\\'", 'R"\\"', "r'", 'r"', "x'1F'", "X'0", "n'a'", "b'1'"),
    *("1e+5r'\\'", "1e-1r'", "1r'\\'", "e'\\''", "u&'a'", "$$", "$a$", "{#", "#}", "{{", "#", "//"),
    *(";", ";;", "; SELECT f5()", "://", "s3://a/--/b", "\\", "\\'", '\\"', "\u017f", "\u0131"),
    *("\u2019", "\u00e9", "\U0001f600", "\u0441", "@", "?", ":a", "|>", "=>", "->", "<=>", "::INT"),
)
_CODE = (
    ", {f}(1) AS c{n}",
    "UNION ALL SELECT {f}(1) AS c{n}",
    "UNION ALL SELECT a FROM {t}",
    "FROM {t} AS x{n}",
    "JOIN {t} AS x{n} ON {f}(1)",
    "WHERE {f}(a) = 'x'",
    "WHERE a IN (SELECT a FROM {t})",
    "LATERAL VIEW {f}(a) l{n} AS c{n}",
    "|> JOIN {t}",
    "QUALIFY {f}(1)",
    "OFFSET 1",
    "LIMIT 3",
    "ORDER BY {f}(a)",
    "({f}(1))",
)


@dataclass
class ConfusingTexts:
    """Writes one text after the other from a seed."""

    rng: random.Random
    number: int = 0

    def text(self) -> str:
        """A query with noise between its words."""
        words = self._query(2).split(" ")
        for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3, 4, 6))):
            piece = self.rng.choice(_NOISE) if self.rng.random() < 0.7 else self._code()
            words.insert(self.rng.randint(0, len(words)), piece)
        if self.rng.random() < 0.4:
            self._hide(words)
        return self.rng.choice((" ", " ", " ", "\n")).join(words)

    def _hide(self, words: list[str]) -> None:
        """Put code between two pieces of noise: what one reader may skip and another may run."""
        at = self.rng.randint(1, len(words))
        pieces = self.rng.choices(_NOISE, k=2)
        words[at:at] = [*pieces, self._code(), *self.rng.choices(_NOISE, k=2)]

    def _code(self) -> str:
        self.number += 1
        names = {"f": self.rng.choice(FUNCTIONS), "t": self.rng.choice(TABLES), "n": self.number}
        return self.rng.choice(_CODE).format(**names)

    def _value(self) -> str:
        call = f"{self.rng.choice(FUNCTIONS)}( 1 , 'a' )"
        return self.rng.choice(
            (call, "1", "1.5e+3", "'a'", '"b"', "r'\\d'", "x'1F'", "1L", "a", "t . a", "`a`")
        )

    def _query(self, depth: int) -> str:
        self.number += 1
        name, table = f"q{self.number}", self.rng.choice(TABLES)
        values = " , ".join(f"{self._value()} AS c{i}" for i in range(self.rng.randint(1, 3)))
        plain = f"SELECT {values} FROM {table} AS t"
        if depth == 0 or self.rng.random() < 0.4:
            return plain
        inner = self._query(depth - 1)
        return self.rng.choice(
            (
                f"WITH {name} AS ( {inner} ) SELECT {values} FROM {name} AS t",
                f"SELECT {values} FROM ( {inner} ) AS t",
                f"{plain} WHERE EXISTS ( {inner} )",
                f"{plain} UNION ALL {inner}",
                f"SELECT ( {inner} ) AS c0 , {values} FROM {table} AS t",
                f"{plain} JOIN {self.rng.choice(TABLES)} AS u ON t . a = u . a",
            )
        )

"""Finds comments, hints and quotes by Spark's rules, and removes comments and hints.

Two parsers that end a comment at different places see different statements. So the text that is
checked and run has no comments and hints, and both parsers find the same quotes in it. The rules
are those of ``SqlBaseLexer.g4`` of the supported Spark version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot.tokenizer_core import Token

# In order of precedence. Non-ASCII characters are allowed only in quotes and comments: Spark treats
# some of them as letters of keywords.
_LEXEME: Final = re.compile(
    r"""
      (?P<space>[ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+)
    | (?P<comment>--(?:\\\n|[^\r\n])*)
    | (?P<hint>/\*\+)
    | (?P<nested>/\*)
    | (?P<end>\*/)
    | (?P<quoted>[rR]'[^']*' | [rR]"[^"]*"
        | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`]|``)*`)
    | (?P<open>['"`])
    | (?P<path>://)
    | (?P<number>[0-9]+[eE][+-][0-9]+(?:[fFdD]|[bB][dD])?)
    | (?P<word>[A-Za-z0-9_]+)
    | (?P<other>[!-~])
    """,
    re.VERBOSE | re.DOTALL,
)
_HINT_ENDS: Final = frozenset({"hint", "end"})
_NESTED: Final = re.compile(r"/\*(?!\+)|\*/")
_QUOTES: Final = frozenset("'\"`")
# Prefixes of literals on which sqlglot and Spark disagree.
_PREFIXES: Final = frozenset("xXnN")


class LexicalError(ValueError):
    """A quote or comment is not closed, or ends elsewhere for another parser."""

    def __init__(self, problem: str, offset: int) -> None:
        self.problem = problem
        self.offset = offset
        super().__init__(problem)


def without_comments(text: str) -> str:
    """Replace comments and hints by spaces; all other characters keep their place.

    >>> without_comments("SELECT /*+ BROADCAST(a) */ '--' -- why")
    "SELECT                     '--'       "

    Raises:
        LexicalError: a quote, comment or hint is not closed, or there is an unexpected character.
    """
    kept = [" "] * len(text)
    for start, end, kind in _lexemes(text):
        if kind == "space":
            kept[start:end] = ["\n" if one == "\n" else " " for one in text[start:end]]
        else:
            kept[start:end] = text[start:end]
    for at, one in enumerate(text):
        if one == "\n" and kept[at] == " ":
            kept[at] = "\n"
    return "".join(kept)


def check_quotes(plain: str, tokens: Sequence[Token]) -> None:
    """Check that sqlglot tokenizes a text without comments like Spark.

    Args:
        plain: result of ``without_comments``.
        tokens: sqlglot's tokens of it.

    Raises:
        LexicalError: it does not.
    """
    spans = {(start, end) for start, end, kind in _lexemes(plain) if kind == "quoted"}
    found = {_literal(plain, one) for one in tokens if _QUOTES & {*plain[one.start : one.end + 1]}}
    if differing := sorted(spans ^ found):
        raise LexicalError("Spark ends this quote at another place", differing[0][0])
    left = list(plain)
    for one in tokens:
        left[one.start : one.end + 1] = " " * (one.end + 1 - one.start)
    rest = "".join(left)
    if rest.strip():
        raise LexicalError("Spark does not read this as a comment", len(rest) - len(rest.lstrip()))


def _literal(plain: str, token: Token) -> tuple[int, int]:
    start = token.start
    if plain[start] in _PREFIXES and plain[start + 1] in _QUOTES:
        start += 1
    return start, token.end + 1


def _lexemes(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and kind of each lexeme outside of comments and hints."""
    at, hint = 0, -1
    while at < len(text):
        kind, end = _lexeme(text, at)
        if kind in _HINT_ENDS:
            if (kind == "hint") is (hint >= 0):
                raise LexicalError("a character is not expected", at)
            hint = at if kind == "hint" else -1
        elif hint < 0 and kind != "comment":
            yield at, end, kind
        at = end
    if hint >= 0:
        raise LexicalError("the /* is not closed", hint)


def _lexeme(text: str, at: int) -> tuple[str, int]:
    """Kind and end of the lexeme at a position."""
    match = _LEXEME.match(text, at)
    match match and match.lastgroup:
        case None:
            raise LexicalError("a character is not expected", at)
        case "open":
            raise LexicalError(f"the {text[at]} is not closed", at)
        case "path":
            raise LexicalError("a path must not be quoted", at)
        case "nested":
            return "comment", _comment_end(text, at)
        case kind:
            return str(kind), match.end() if match else at


def _comment_end(text: str, start: int) -> int:
    depth = 0
    for match in _NESTED.finditer(text, start):
        depth += 1 if match[0] == "/*" else -1
        if not depth:
            return match.end()
    raise LexicalError("the /* is not closed", start)

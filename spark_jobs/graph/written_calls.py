"""Calls as written, because sqlglot's tree adds, drops and moves arguments.

The parser stores each call in the metadata of its node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from sqlglot import exp
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

# Key of a node's metadata with the calls that became this node.
_META: Final = "calls"
# Key of a call's metadata with the path of a variant that became this call.
_PATH: Final = "path"
_OPENING: Final = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING: Final = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_OF_QUERY: Final = {TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES}
_BEFORE_STAR: Final = {TokenType.L_PAREN, TokenType.COMMA, TokenType.DOT, TokenType.DISTINCT}
_WITH_TYPES: Final = {"array", "map", "struct"}

# Units of sqlglot that Spark does not know.
_ABBREVIATED: Final = exp.TimeUnit.UNABBREVIATED_UNIT_NAME.keys()


@dataclass(frozen=True)
class WrittenCall:
    """A call of a function.

    Attributes:
        name: as written.
        count: of its arguments; None if the text is ambiguous.
        start: offset of the name.
    """

    name: str
    count: int | None
    start: int


def note_call(node: exp.Expr, tokens: Sequence[Token], at: int) -> None:
    """Store in a node the call whose name is at an index of the tokens."""
    token = tokens[at]
    call = WrittenCall(token.text, count_arguments(tokens, at + 1), token.start)
    node.meta[_META] = (*node.meta.get(_META, ()), call)


def note_path(call: exp.Expr, path: str) -> None:
    """Store in a call of VARIANT_GET that it was written as ``v:a.b``, with ``$.a.b``."""
    call.meta[_PATH] = path


def path_of_variant(node: exp.Expr) -> str:
    """The path of ``v:a.b`` as ``$.a.b``; "" for another node, and for a written call."""
    return str(node.meta.get(_PATH, ""))


def written_calls(tree: exp.Expr) -> Iterator[WrittenCall]:
    """The calls that a tree was parsed from."""
    for node in tree.walk():
        yield from node.meta.get(_META, ())


def count_arguments(tokens: Sequence[Token], at: int) -> int | None:
    """The number of arguments between the parenthesis at an index and its end.

    None for arguments in words as in ``TRIM(BOTH FROM x)`` or ``POSITION('a' IN x)``, for names as
    in ``f(len => 2)``, for stars and queries, and next to a type such as ``MAP<STRING, INT>``.

    >>> from spark_jobs.graph.dialect import dialect
    >>> [count_arguments(dialect().tokenize(f"f({x})"), 1) for x in ("", "a", "g(a, b), c", "t.*")]
    [0, 1, 2, None]
    """
    depth = count = 0
    for before, token in pairwise(tokens[at:]):
        if before.token_type in _OPENING:
            depth += 1
        elif before.token_type in _CLOSING:
            depth -= 1
        if depth == 1 and _unclear(before, token):
            return None
        if token.token_type in _CLOSING and depth == 1:
            empty = before.token_type in _OPENING
            return 0 if empty else count + 1
        count += depth == 1 and token.token_type is TokenType.COMMA
    return None


def _unclear(before: Token, token: Token) -> bool:
    """Whether commas do not give the number of arguments around two tokens."""
    kind = token.token_type
    if kind is TokenType.STAR:
        return before.token_type in _BEFORE_STAR
    if kind is TokenType.LT:
        return before.text.lower() in _WITH_TYPES
    in_words = kind is TokenType.IN and before.token_type is TokenType.STRING
    return in_words or kind is TokenType.FARROW or kind in _OF_QUERY


def truncation(name: str, *, unit: int) -> Callable[[list[Any]], exp.Expr]:
    """Read a call whose unit may be any expression: sqlglot takes a column for the unit's name.

    And it takes 'Q' for QUARTER, where Spark knows no such unit and returns NULL.
    """
    builder: Callable[[list[Any]], exp.Expr] = SparkParser.FUNCTIONS[name]

    def read(arguments: list[Any]) -> exp.Expr:
        known = len(arguments) == 2 and isinstance(arguments[unit], exp.Literal)
        known = known and arguments[unit].name.upper() not in _ABBREVIATED
        if len(arguments) == 2 and not known:
            return exp.Anonymous(this=name, expressions=arguments)
        return builder(arguments)

    return read

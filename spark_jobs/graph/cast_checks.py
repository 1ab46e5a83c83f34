"""Checks casts for types that Spark does not have.

The parser replaces types of other engines by Spark's, so the tokens of the file are checked, not
the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.definitions.column_types import TypeTextError, canonical_type
from spark_jobs.errors import LakehouseError
from spark_jobs.graph.parsing import SqlText
from spark_jobs.graph.semantic_errors import CastTypeError

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
# Types of values that no column of a table can have, and a second name of a type.
_OTHER_TYPES = ("character", "interval", "variant", "void", "time", "geometry", "geography")


def check_casts(tokens: Sequence[Token], source: SqlText, subject: str) -> Iterator[LakehouseError]:
    """Report casts to types that Spark does not have."""
    # For each open parenthesis, whether it is that of a cast.
    casts: list[bool] = []
    for at, token in enumerate(tokens[:-1]):
        kind = token.token_type
        if kind in _OPENING:
            casts.append(at > 0 and tokens[at - 1].text.lower() in {"cast", "try_cast"})
        elif kind in _CLOSING and casts:
            casts.pop()
        # A number such as 0L is parsed as a cast, too.
        short = kind is TokenType.DCOLON and source.text.startswith("::", token.start)
        if short or (kind is TokenType.ALIAS and casts and casts[-1]):
            yield from _cast(tokens[at + 1 : at + 8], source, subject)


def _cast(tokens: Sequence[Token], source: SqlText, subject: str) -> Iterator[CastTypeError]:
    """A type that Spark does not have: one word, and optional arguments in parentheses."""
    word, following = tokens[0], tokens[1] if len(tokens) > 1 else None
    end = word.end
    if following is not None and following.token_type is TokenType.L_PAREN:
        end = next((one.end for one in tokens if one.token_type is TokenType.R_PAREN), end)
    elif following is not None and following.token_type is TokenType.LT:
        return
    text = source.text[word.start : end + 1]
    if word.text.lower() in _OTHER_TYPES:
        return
    try:
        canonical_type(text)
    except TypeTextError as error:
        problem, hint = error.args
        yield CastTypeError(subject, text, problem, hint=hint, location=source.at(word.start))

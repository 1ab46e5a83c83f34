"""Formats a SELECT: keywords in upper case, one clause and one column per line, indents by depth.

It changes only blanks and line ends, and keeps the author's other line ends. sqlglot's generator is
not used, because it rewrites functions and comments. The result is parsed again and must have the
same tokens, comments and tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.errors import LocatedError
from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.lexemes import without_comments
from spark_jobs.graph.parsing import SqlText, parse_select

_STEP: Final = 2
_JOINS: Final = frozenset(
    {"LEFT", "RIGHT", "FULL", "INNER", "CROSS", "SEMI", "ANTI", "NATURAL", "OUTER", "JOIN"}
)
_CLAUSES: Final = _JOINS | {
    "WITH", "SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "ORDER BY", "LIMIT",
    "UNION", "EXCEPT", "INTERSECT",
}  # fmt: skip
_KEYWORDS: Final = _CLAUSES | {
    "ALL", "AND", "AS", "ASC", "BETWEEN", "BY", "CASE", "DESC", "DISTINCT", "ELSE", "END", "EXISTS",
    "FALSE", "IN", "INTERVAL", "IS", "LIKE", "NOT", "NULL", "ON", "OR", "OVER", "PARTITION BY",
    "THEN", "TRUE", "USING", "WHEN",
}  # fmt: skip


class LayoutRefusedError(LocatedError):
    """Formatting would change the SELECT."""

    condition = "LAYOUT_REFUSED"
    problem: str
    primary = "the file is not formatted: {problem}"
    hint = "Format it by hand, and report the statement: this is a bug in tidemark fmt."


class _Kind(Enum):
    QUERY = auto()
    BRACKET = auto()
    CASE = auto()


@dataclass(frozen=True)
class _Piece:
    """A token or a comment, and the line ends before it."""

    text: str
    ends: int
    blank: bool
    word: str = ""
    type: TokenType | None = None

    @property
    def comment(self) -> bool:
        return self.type is None


@dataclass
class _Context:
    """An open query, bracket or CASE.

    Attributes:
        outer: indent of the line that opened it.
        broken: whether its clauses are on lines of their own.
        clause: the current clause of a query.
    """

    kind: _Kind
    outer: int
    indent: int
    broken: bool = True
    clause: str = ""


@dataclass
class _Writer:
    contexts: list[_Context]
    lines: list[str] = field(default_factory=list)
    line: str = ""
    indent: int = 0

    def end_line(self) -> None:
        if self.line:
            self.lines.append(" " * self.indent + self.line)
        self.line = ""

    def begin(self, indent: int, *, blank: bool) -> None:
        self.end_line()
        if blank and self.lines:
            self.lines.append("")
        self.indent = indent


def laid_out(source: SqlText) -> str:
    """The formatted statement, without a trailing line end.

    >>> print(laid_out(SqlText("a.sql", "select a,b from silver.t as t where a>1 -- why")))
    SELECT
      a,
      b
    FROM silver.t AS t
    WHERE a>1 -- why

    Raises:
        LakehouseError: the text is not one SELECT.
        LayoutRefusedError: formatting would change the statement.
    """
    tree = parse_select(source)
    for raised in (True, False):
        pieces = list(_pieces(source.text, raised=raised))
        text = _written(pieces)
        found = list(_pieces(text, raised=raised))
        if [one.text for one in found] != [one.text for one in pieces]:
            continue
        if parse_select(SqlText(source.file, text)) == tree:
            return text
    raise LayoutRefusedError("it would be another statement", location=source.first())


def _pieces(text: str, *, raised: bool) -> Iterator[_Piece]:
    tokens = list(dialect().tokenize(without_comments(text)))
    end = 0
    for at, token in enumerate(tokens):
        yield from _comments(text, end, token.start)
        ends, blank = _gap(text, end, token.start)
        written = text[token.start : token.end + 1]
        word = _keyword(tokens, at, written)
        shown = word if word and raised else written
        yield _Piece(shown, ends, blank, word, token.token_type)
        end = token.end + 1
    yield from _comments(text, end, len(text))


def _comments(text: str, start: int, stop: int) -> Iterator[_Piece]:
    """The comments between two tokens."""
    while (at := _first(text, start, stop)) < stop:
        ends, blank = _gap(text, start, at)
        if text.startswith("--", at):
            after = text.find("\n", at, stop)
            after = stop if after < 0 else after
        else:
            after = _block_end(text, at, stop)
        yield _Piece(text[at:after].rstrip(), ends, blank)
        start = after


def _first(text: str, start: int, stop: int) -> int:
    while start < stop and text[start].isspace():
        start += 1
    return start


def _block_end(text: str, at: int, stop: int) -> int:
    depth, here = 0, at
    while here < stop:
        if text.startswith("/*", here):
            depth, here = depth + 1, here + 2
        elif text.startswith("*/", here):
            depth, here = depth - 1, here + 2
            if not depth:
                return here
        else:
            here += 1
    return stop


def _gap(text: str, start: int, stop: int) -> tuple[int, bool]:
    """The number of line ends right before a piece, and whether anything separates it."""
    space = text[start:stop]
    tail = space[len(space.rstrip()) :]
    return tail.count("\n"), bool(tail)


def _keyword(tokens: Sequence[Token], at: int, written: str) -> str:
    """A token as an upper-case keyword; "" if it is not one, or is a name."""
    word = " ".join(written.upper().split())
    if word not in _KEYWORDS:
        return ""
    before = tokens[at - 1].token_type if at else None
    after = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    if before in {TokenType.DOT, TokenType.ALIAS} and word not in {"SELECT", "WITH"}:
        return ""
    if after is TokenType.DOT or (word in {"LEFT", "RIGHT"} and after is TokenType.L_PAREN):
        return ""
    if word == "EXCEPT" and before is TokenType.STAR:
        return ""
    return word


def _written(pieces: Sequence[_Piece]) -> str:
    writer = _Writer([_Context(_Kind.QUERY, 0, 0)])
    wanted = False
    # The previous piece and the previous token.
    before: _Piece | None = None
    token: _Piece | None = None
    for at, piece in enumerate(pieces):
        context = writer.contexts[-1]
        following = next((one for one in pieces[at:] if not one.comment), None)
        own = piece.ends > 0 or (before is not None and before.comment and _to_end(before))
        forced = not piece.comment and (wanted or _starts_clause(piece, token, context))
        closes = piece.word == "END" if context.kind is _Kind.CASE else piece.text == ")"
        forced |= closes and context.kind is _Kind.QUERY and context.broken
        if before is None or own or forced:
            indent = _indent(following or piece, token, context, closes=closes)
            writer.begin(indent, blank=piece.ends > 1)
        elif _apart(before, piece):
            writer.line += " "
        writer.line += piece.text
        if piece.comment:
            before = piece
            continue
        wanted = _follow(writer, piece, pieces, at, closes=closes)
        before = token = piece
    writer.end_line()
    return "\n".join(line.rstrip() for line in writer.lines)


def _follow(
    writer: _Writer, piece: _Piece, pieces: Sequence[_Piece], at: int, *, closes: bool
) -> bool:
    """Open or close a context at a piece; returns whether the next token starts a line."""
    context = writer.contexts[-1]
    if closes and len(writer.contexts) > 1:
        writer.contexts.pop()
        return False
    if piece.text == "(":
        writer.contexts.append(_opened(pieces, at, writer.indent))
        return False
    if piece.word == "CASE":
        writer.contexts.append(_Context(_Kind.CASE, writer.indent, writer.indent + _STEP))
        return False
    if context.kind is not _Kind.QUERY:
        return False
    if piece.word in _CLAUSES:
        context.clause = piece.word
        after = next((one for one in pieces[at + 1 :] if not one.comment), None)
        return (
            context.broken
            and piece.word == "SELECT"
            and not (after is not None and after.word == "DISTINCT")
        )
    if piece.word == "DISTINCT" and context.clause == "SELECT":
        previous = next((one for one in reversed(pieces[:at]) if not one.comment), None)
        return context.broken and previous is not None and previous.word == "SELECT"
    return context.broken and piece.text == "," and context.clause in {"SELECT", "WITH"}


def _opened(pieces: Sequence[_Piece], at: int, indent: int) -> _Context:
    """The context that a bracket opens; stays on one line if the author wrote it so."""
    depth, ends, first = 0, 0, ""
    for piece in pieces[at:]:
        depth += (piece.text == "(") - (piece.text == ")")
        if not depth:
            break
        ends += piece.ends if piece is not pieces[at] else 0
        if piece is not pieces[at] and not piece.comment and not first:
            first = piece.word or piece.text
    kind = _Kind.QUERY if first in {"SELECT", "WITH"} else _Kind.BRACKET
    return _Context(kind, indent, indent + _STEP, broken=ends > 0)


def _starts_clause(piece: _Piece, before: _Piece | None, context: _Context) -> bool:
    if context.kind is not _Kind.QUERY or not context.broken or piece.word not in _CLAUSES:
        return False
    if before is not None and piece.word in _JOINS and before.word in _JOINS:
        return False
    # IS DISTINCT FROM is an operator.
    return not (piece.word == "FROM" and before is not None and before.word == "DISTINCT")


def _indent(piece: _Piece, before: _Piece | None, context: _Context, *, closes: bool) -> int:
    if closes:
        return context.outer
    if context.kind is not _Kind.QUERY or before is None:
        return context.indent
    if _starts_clause(piece, before, context):
        return context.indent
    if context.clause == "WITH":
        return context.indent if before.text == "," else context.indent + _STEP
    begins = before.text == "," or before.word in {"SELECT", "DISTINCT"}
    if context.clause == "SELECT" and not begins:
        return context.indent + 2 * _STEP
    return context.indent + _STEP


def _to_end(piece: _Piece) -> bool:
    return piece.text.startswith("--")


def _apart(before: _Piece, piece: _Piece) -> bool:
    if piece.text in {",", ")"} or before.text == "(":
        return piece.comment or before.comment
    return piece.blank or before.text == "," or piece.comment

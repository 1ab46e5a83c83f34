"""Parses a SQL file to one SELECT, or finds the place of the syntax error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError, TokenError
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.errors import Location
from spark_jobs.graph.dialect import dialect, to_sql
from spark_jobs.graph.errors import (
    DuplicateRelationError,
    NotOneSelectError,
    SqlSyntaxError,
    SqlTooDeepError,
)
from spark_jobs.graph.foreign_clauses import foreign_clauses
from spark_jobs.graph.function_arguments import function_arguments
from spark_jobs.graph.lexemes import LexicalError, check_quotes, without_comments
from spark_jobs.graph.semantic_errors import FunctionArgumentsError
from spark_jobs.graph.syntax_errors import (
    ForeignClauseError,
    PipeSyntaxError,
    UnboundParameterError,
)
from spark_jobs.graph.written_calls import count_arguments
from spark_jobs.names import COLUMN

# A comma before one of these is an error in Spark, but sqlglot ignores it.
_NOT_AFTER_COMMA = {
    TokenType.COMMA, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING,
    TokenType.ORDER_BY, TokenType.R_PAREN, TokenType.SEMICOLON,
}  # fmt: skip
# sqlglot ignores an AS behind one of these.
_BEFORE_COLUMNS = {TokenType.SELECT, TokenType.ALL, TokenType.DISTINCT}

# Errors that sqlglot raises by accident on some texts.
_UNFORESEEN = (
    AssertionError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError,
)  # fmt: skip


@dataclass(frozen=True)
class SqlText:
    """A SQL file's text, with the header blanked out; converts offsets to locations."""

    file: str
    text: str

    def at(self, offset: int) -> Location:
        """The location of a character."""
        line_start = self.text.rfind("\n", 0, offset) + 1
        return Location(self.file, self.text.count("\n", 0, offset) + 1, offset - line_start + 1)

    def of(self, node: exp.Expr) -> Location:
        """The location of a node's start, as far as sqlglot recorded it."""
        offsets = [start for one in node.walk() if (start := one.meta.get("start")) is not None]
        if offsets:
            return self.at(min(offsets))
        parent = node.parent
        return self.of(parent) if parent is not None else self.first()

    def first(self) -> Location:
        """The location of the first word."""
        return self.at(len(self.text) - len(self.text.lstrip()))


def in_file(sql: str, *, file: str, text: str) -> SqlText | None:
    """A statement at its place in the file, the rest blanked out; None if it is not there."""
    start = text.find(sql)
    if start < 0:
        return None
    return SqlText(file, re.sub(r"[^\n]", " ", text[:start]) + sql)


def parse_select(source: SqlText) -> exp.Query:
    """Parse a file that must contain one SELECT.

    Raises:
        SqlSyntaxError: the text is not valid SQL.
        ForeignClauseError: Spark does not have a clause.
        PipeSyntaxError: the query has steps.
        UnboundParameterError: a parameter stands for a value.
        FunctionArgumentsError: a call lacks an argument, or has one too many.
        SqlTooDeepError: expressions or subqueries are nested too deeply.
        DuplicateRelationError: two relations of a FROM clause have the same name.
        NotOneSelectError: the text has another statement, none, or several.
    """
    reader = dialect()
    tokens = _tokens(source)
    _check_commas(tokens, source)
    _check_aliases(tokens, source)
    _check_dots(tokens, source)
    try:
        trees = reader.parser().parse(tokens, source.text)
    except RecursionError as error:
        raise SqlTooDeepError(location=source.first()) from error
    except ParseError as error:
        first = error.errors[0]
        raise _parse_error(first, tokens, source) from error
    except _UNFORESEEN as error:
        calls = (_wrong_arguments(tokens, at, source) for at in _calls(tokens))
        if (wrong := next((one for one in calls if one is not None), None)) is not None:
            raise wrong from error
        problem = "a part of it is in a wrong place"
        raise SqlSyntaxError(problem, location=source.first()) from error
    tree = next((one for one in trees if one is not None), None)
    if not isinstance(tree, exp.Query) or isinstance(tree, exp.Subquery):
        raise NotOneSelectError("it is another statement", location=source.first())
    for clause, foreign in foreign_clauses(tree):
        raise ForeignClauseError(foreign, location=source.of(clause))
    for parameter in tree.find_all(exp.Placeholder, exp.Parameter):
        written = to_sql(parameter)
        raise UnboundParameterError(written, location=source.of(parameter))
    _check_names(tree, tokens, source)
    _check_columns(tree, source)
    _check_relations(tree, source)
    return tree


def _check_names(tree: exp.Query, tokens: list[Token], source: SqlText) -> None:
    """Check that no name is a text: in Spark, double quotes are those of texts."""
    texts = {one.start: one for one in tokens if one.token_type is TokenType.STRING}
    for name in tree.find_all(exp.Identifier):
        text = texts.get(name.meta.get("start", -1))
        if text is not None and text.text == name.name:
            raise _text_as_name(source.text[text.start : text.end + 1], source.at(text.start))
    for join in tree.find_all(exp.Join):
        for column in join.args.get("using") or ():
            if not isinstance(column, exp.Identifier | exp.Column):
                raise _text_as_name(to_sql(column), source.of(column))


def _check_columns(tree: exp.Query, source: SqlText) -> None:
    """Check that each SELECT has a column: Spark reads ``(SELECT) AS t`` as a table "SELECT"."""
    for select in tree.find_all(exp.Select):
        if not select.expressions:
            raise SqlSyntaxError("a SELECT has no column", location=source.of(select))


def _check_relations(tree: exp.Query, source: SqlText) -> None:
    """Check that relations of a FROM clause have different names."""
    for select in tree.find_all(exp.Select):
        from_, joins = select.args.get("from_"), select.args.get("joins", ())
        relations = [one.this for one in (from_, *joins) if one is not None]
        seen: set[str] = set()
        for relation in (*relations, *select.args.get("laterals", ())):
            name = relation.alias_or_name.lower()
            if name and name in seen:
                raise DuplicateRelationError(name, location=source.of(relation))
            seen.add(name)
    try:
        traverse_scope(tree)
    except SqlglotError as error:
        problem = str(error).splitlines()[0]
        raise SqlSyntaxError(problem, location=source.first()) from error
    except RecursionError as error:
        raise SqlTooDeepError(location=source.first()) from error


def plain_sql(source: SqlText) -> str:
    """The text that Spark runs: without comments and hints, all characters at their place.

    >>> plain_sql(SqlText("query", "SELECT a -- of all"))
    'SELECT a          '

    Raises:
        SqlSyntaxError: it is not SQL, or sqlglot and Spark disagree where a quote or comment ends.
    """
    plain, _ = plain_tokens(source)
    return plain


def plain_tokens(source: SqlText) -> tuple[str, list[Token]]:
    """``plain_sql`` and its tokens.

    Raises:
        SqlSyntaxError: as ``plain_sql``.
    """
    plain, tokens = _read(source)
    _check_quotes(plain, tokens, source)
    return plain, tokens


def _read(source: SqlText) -> tuple[str, list[Token]]:
    """The text without comments, and its tokens."""
    try:
        plain = without_comments(source.text)
        return plain, dialect().tokenize(plain)
    except LexicalError as error:
        raise SqlSyntaxError(error.problem, location=source.at(error.offset)) from error
    except TokenError as error:
        raise SqlSyntaxError("a quote is not closed", location=source.first()) from error


def _check_quotes(plain: str, tokens: list[Token], source: SqlText) -> None:
    try:
        check_quotes(plain, tokens)
    except LexicalError as error:
        raise SqlSyntaxError(error.problem, location=source.at(error.offset)) from error


def _tokens(source: SqlText) -> list[Token]:
    """The tokens of ``plain_sql``, with the comments attached."""
    plain, wanted = _read(source)
    _check_statements(wanted, source)
    _check_quotes(plain, wanted, source)
    if plain == source.text:
        return wanted
    try:
        tokens = dialect().tokenize(source.text)
    except TokenError as error:
        problem = "Spark ends a comment at another place"
        raise SqlSyntaxError(problem, location=source.first()) from error
    kept = [one for one in tokens if not plain[one.start].isspace()]
    for one, read in zip_longest(kept, wanted):
        if one is None or read is None or _same(one) != _same(read):
            problem = "a comment before it ends at another place for Spark"
            raise SqlSyntaxError(problem, location=source.at((read or one).start))
    return kept


def _same(token: Token) -> tuple[TokenType, str, int, int]:
    return token.token_type, token.text, token.start, token.end


def _check_statements(tokens: list[Token], source: SqlText) -> None:
    meaningful = [token for token in tokens if token.token_type is not TokenType.SEMICOLON]
    if not meaningful:
        raise NotOneSelectError("it is empty", location=Location(source.file, 1))
    first = next(
        (at for at, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON),
        len(tokens),
    )
    rest = [one for one in tokens[first:] if one.token_type is not TokenType.SEMICOLON]
    if first and rest:
        raise NotOneSelectError("a second statement follows", location=source.at(rest[0].start))
    start = tokens[0]
    allowed = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
    if start.token_type not in allowed:
        word = start.text.upper()
        remedy = ": write SELECT before FROM" if start.token_type is TokenType.FROM else ""
        raise NotOneSelectError(f"it starts with {word}{remedy}", location=source.at(start.start))
    for token in tokens:
        if token.token_type is TokenType.PIPE_GT:
            raise PipeSyntaxError(location=source.at(token.start))


def _check_commas(tokens: list[Token], source: SqlText) -> None:
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.token_type is not TokenType.COMMA:
            continue
        if following is None or following.token_type in _NOT_AFTER_COMMA:
            raise SqlSyntaxError("there is an extra comma", location=source.at(token.start))


def _check_aliases(tokens: list[Token], source: SqlText) -> None:
    """Check that AS follows a column: ``SELECT AS (a)`` calls a function in Spark, here it is a."""
    for before, token in pairwise(tokens):
        if token.token_type is TokenType.ALIAS and before.token_type in _BEFORE_COLUMNS:
            raise SqlSyntaxError("AS has no column before it", location=source.at(token.start))


def _check_dots(tokens: list[Token], source: SqlText) -> None:
    """Check that no text is beside a dot: ``o."status"`` is a column elsewhere."""
    for before, token in pairwise(tokens):
        if TokenType.DOT in (before.token_type, token.token_type):
            for one in (before, token):
                if one.token_type is TokenType.STRING:
                    written = source.text[one.start : one.end + 1]
                    raise _text_as_name(written, source.at(one.start))


def _text_as_name(written: str, place: Location) -> SqlSyntaxError:
    name = written.strip("'\"")
    plain = name if all(map(COLUMN.fullmatch, name.split("."))) else f"`{name}`"
    return SqlSyntaxError(f"{written} is a text, not a name: write {plain}", location=place)


def _parse_error(
    error: dict[str, object], tokens: list[Token], source: SqlText
) -> SqlSyntaxError | FunctionArgumentsError:
    told = str(error.get("description") or "it ends too early")
    text = re.sub(r"<Token .*?, text: (.*?), line: .*?>", r"'\1'", told)
    near = str(error.get("highlight") or "")
    place = _parse_place(error, source)
    needed = re.match(r"Required (?:argument|keyword): '(\w+)' missing for .*?(\w+)['>]*$", text)
    many = re.search(r"provided arguments \((\d+)\) is greater than .* arguments \((\d+)\)", text)
    # The parser names its own class, and not what was written.
    at = _called_before(place, tokens, source) if needed or many else None
    if at is not None and (wrong := _wrong_arguments(tokens, at, source)) is not None:
        return wrong
    called = needed[2].upper() if needed else ""
    if at is not None:
        called = tokens[at].text.upper()
    if needed:
        return SqlSyntaxError(f"{called} is missing an argument", location=place)
    if many and called:
        problem = f"{called} has {many[1]} arguments, and takes {many[2]} at most"
        return SqlSyntaxError(problem, location=place)
    text = text[:1].lower() + text[1:].rstrip(".")
    return SqlSyntaxError(f"{text}, near {near!r}" if near else text, location=place)


def _wrong_arguments(
    tokens: list[Token], at: int, source: SqlText
) -> FunctionArgumentsError | None:
    """The mistake of the call at an index, if Spark refuses the number of its arguments."""
    takes = function_arguments(tokens[at].text)
    count = count_arguments(tokens, at + 1)
    if takes is None or count is None or takes.allow(count):
        return None
    place = source.at(tokens[at].start)
    return FunctionArgumentsError(tokens[at].text, count, takes, location=place)


def _calls(tokens: list[Token]) -> Iterator[int]:
    """The indices of all words before a parenthesis."""
    for at, token in enumerate(tokens[1:]):
        if token.token_type is TokenType.L_PAREN:
            yield at


def _called_before(place: Location, tokens: list[Token], source: SqlText) -> int | None:
    """The index of the function whose parenthesis is open at a place."""
    open_calls: list[int] = []
    for at, token in enumerate(tokens[1:]):
        where = source.at(token.start)
        if (where.line or 0, where.column or 0) >= (place.line or 0, place.column or 0):
            break
        if token.token_type is TokenType.L_PAREN:
            open_calls.append(at)
        elif token.token_type is TokenType.R_PAREN and open_calls:
            open_calls.pop()
    return open_calls[-1] if open_calls else None


def _parse_place(error: dict[str, object], source: SqlText) -> Location:
    """The parser reports the line and column of a token's last character."""
    line, column = error.get("line"), error.get("col")
    if not isinstance(line, int) or not isinstance(column, int):
        return source.first()
    width = max(len(str(error.get("highlight") or "")), 1)
    return Location(source.file, line, max(column - width + 1, 1))

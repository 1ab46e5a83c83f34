"""Expands variables, macros and ephemeral views in SQL.

``@name`` is a value of the settings, a macro call an expression, ``ephemeral.name`` a subquery.
Tokens are replaced before parsing, so that checks, incremental maintenance and Spark all see one
plain SELECT. A replacement keeps the number of lines, so that later locations stay correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from spark_jobs.definitions.project import Definitions, GoldDefinition, SilverDefinition
from spark_jobs.errors import LakehouseError, Location
from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.macros import Macro, one_line, read_macro
from spark_jobs.graph.parsing import SqlText, parse_select, plain_sql, plain_tokens
from spark_jobs.graph.reuse_errors import (
    ExpansionTooLargeError,
    MacroArgumentsError,
    ReuseCycleError,
    UnknownEphemeralError,
    UnknownVariableError,
)

Value = str | int | float | bool
_Sql = TypeVar("_Sql", SilverDefinition, GoldDefinition)

EPHEMERAL: Final = "ephemeral"
# Limit of an expanded statement, in characters.
LARGEST: Final = 100_000
# Words after a relation that are not its alias.
_NO_ALIAS = frozenset(
    [
        "ON",
        "USING",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "MINUS",
        "JOIN",
        "INNER",
        "LEFT",
        "RIGHT",
        "FULL",
        "CROSS",
        "NATURAL",
        "SEMI",
        "ANTI",
        "LATERAL",
        "WINDOW",
        "QUALIFY",
        "CLUSTER",
        "DISTRIBUTE",
        "SORT",
        "OFFSET",
        "PIVOT",
        "UNPIVOT",
        "TABLESAMPLE",
    ]
)


@dataclass
class Library:
    """The variables, macros and ephemeral views of a project, and a cache of expansions."""

    variables: Mapping[str, Value]
    macros: Mapping[str, Macro] = field(default_factory=dict)
    ephemeral: Mapping[str, str] = field(default_factory=dict)
    _made: dict[str, str | LakehouseError] = field(default_factory=dict)

    def expand(self, source: SqlText, *, inside: tuple[str, ...] = ()) -> str:
        """The text with everything expanded.

        Args:
            source: a SQL file's text, with the header blanked out.
            inside: names that are being expanded already.

        Raises:
            LakehouseError: a name does not exist, uses itself, or its arguments do not fit; with
                the location of the use.
        """
        _, tokens = plain_tokens(source)
        made, at, index = "", 0, 0
        while index < len(tokens):
            used = self._used(tokens, index)
            if used is None:
                index += 1
                continue
            last = used.last
            start, end = tokens[index].start, tokens[last].end + 1
            text = self._text(used, source, tokens, inside)
            lines = source.text.count("\n", start, end)
            made += source.text[at:start] + text + "\n" * lines
            at, index = end, last + 1
            if len(made) > LARGEST:
                raise ExpansionTooLargeError(LARGEST, location=source.at(start))
        return made + source.text[at:]

    def _used(self, tokens: Sequence[Token], index: int) -> _Use | None:
        token = tokens[index]
        following = tokens[index + 1 : index + 3]
        if token.token_type is TokenType.PARAMETER and following:
            return _Use("@", following[0].text, index, index + 1)
        if index and tokens[index - 1].token_type is TokenType.DOT:
            return None
        kinds = [one.token_type for one in following]
        name = token.text.lower()
        if name in self.macros and kinds[:1] == [TokenType.L_PAREN]:
            return _Use("macro", name, index, _closing(tokens, index + 1))
        if name == EPHEMERAL and kinds[:1] == [TokenType.DOT] and len(kinds) > 1:
            return _Use(EPHEMERAL, following[1].text, index, index + 2)
        return None

    def _text(
        self, used: _Use, source: SqlText, tokens: Sequence[Token], inside: tuple[str, ...]
    ) -> str:
        place = source.at(tokens[used.first].start)
        if used.kind == "@":
            return self._variable(used.name, place)
        key = f"{used.kind} {used.name}"
        if key in inside:
            raise ReuseCycleError((*inside[inside.index(key) :], key), location=place)
        within = (*inside, key)
        if used.kind == EPHEMERAL:
            return self._subquery(used, tokens, place, within)
        return self._call(used, source, tokens, within)

    def _variable(self, name: str, place: Location) -> str:
        if name not in self.variables:
            raise UnknownVariableError(name, sorted(self.variables), location=place)
        return literal(self.variables[name])

    def _subquery(
        self, used: _Use, tokens: Sequence[Token], place: Location, within: tuple[str, ...]
    ) -> str:
        text = self.ephemeral.get(used.name.lower())
        if text is None:
            raise UnknownEphemeralError(used.name, sorted(self.ephemeral), location=place)
        file = f"sql/{EPHEMERAL}/{used.name}.sql"
        query = self._once(SqlText(file, text), within).rstrip("; ")
        following = tokens[used.last + 1] if used.last + 1 < len(tokens) else None
        named = following is not None and (
            following.token_type is TokenType.ALIAS
            or (
                following.token_type in {TokenType.VAR, TokenType.IDENTIFIER}
                and following.text.upper() not in _NO_ALIAS
            )
        )
        return f"({query})" if named else f"({query}) AS {used.name}"

    def _call(
        self, used: _Use, source: SqlText, tokens: Sequence[Token], within: tuple[str, ...]
    ) -> str:
        macro = self.macros[used.name]
        place = source.at(tokens[used.first].start)
        texts = _arguments(plain_sql(source), tokens, used)
        given = [one for one in texts if one.strip()]
        if len(given) != len(macro.parameters):
            raise MacroArgumentsError(
                macro.name, len(macro.parameters), len(given), macro.parameters, location=place
            )
        # Arguments belong to the caller: they may use the macro itself.
        values = [
            one_line(self.expand(SqlText(source.file, one), inside=within[:-1])) for one in given
        ]
        body = self._once(SqlText(macro.file, macro.body), within)
        filled = _filled(body, dict(zip(macro.parameters, values, strict=True)))
        if len(filled) > LARGEST:
            raise ExpansionTooLargeError(LARGEST, location=place)
        return f"({filled})"

    def _once(self, source: SqlText, within: tuple[str, ...]) -> str:
        """The expansion of a macro or ephemeral view, on one line; cached."""
        key = within[-1]
        if key not in self._made:
            try:
                self._made[key] = one_line(self.expand(source, inside=within))
            except LakehouseError as error:
                self._made[key] = error
        made = self._made[key]
        if isinstance(made, LakehouseError):
            raise made
        return made


@dataclass(frozen=True)
class _Use:
    """A use of a name, from its first to its last token."""

    kind: str
    name: str
    first: int
    last: int


def expanded(
    definitions: Definitions, variables: Mapping[str, Value], problems: list[LakehouseError]
) -> Definitions:
    """The definitions with everything expanded; errors are added to ``problems``.

    Args:
        definitions: as declared in the files.
        variables: values by name.
        problems: collects errors of macros, ephemeral views and their users.
    """
    library = library_of(definitions, variables, problems)
    return replace(
        definitions,
        silver=_all(definitions.silver, library, problems),
        gold=_all(definitions.gold, library, problems),
    )


def library_of(
    definitions: Definitions, variables: Mapping[str, Value], problems: list[LakehouseError]
) -> Library:
    """The variables, macros and ephemeral views of a project."""
    library = Library(variables)
    macros = {}
    for file in definitions.macros.values():
        try:
            macros[file.name] = read_macro(file)
        except LakehouseError as error:
            _tell(problems, error)
    library.macros = macros
    ephemeral = {}
    for file in definitions.ephemeral.values():
        try:
            ephemeral[file.name] = plain_sql(SqlText(file.file, file.text))
        except LakehouseError as error:
            _tell(problems, error)
    library.ephemeral = ephemeral
    for macro in macros.values():
        _check(library, SqlText(macro.file, macro.body), f"macro {macro.name}", problems)
    for name, text in ephemeral.items():
        source = SqlText(definitions.ephemeral[name].file, text)
        query = _check(library, source, f"{EPHEMERAL} {name}", problems)
        if query is not None:
            try:
                parse_select(SqlText(source.file, query))
            except LakehouseError as error:
                _tell(problems, error)
    return library


def _tell(problems: list[LakehouseError], error: LakehouseError) -> None:
    """Add a problem once: users of a macro get its own, and each part of a cycle finds it."""
    for at, known in enumerate(problems):
        if known is error:
            return
        cycles = [set(one.path) for one in (known, error) if isinstance(one, ReuseCycleError)]
        if len(cycles) > 1 and cycles[0] == cycles[1]:
            problems[at] = min(known, error, key=_place)
            return
    problems.append(error)


def _place(error: LakehouseError) -> tuple[str, int, int]:
    at = error.location or Location("")
    return at.file, at.line or 0, at.column or 0


def literal(value: Value) -> str:
    """A value as a SQL literal.

    >>> literal(True), literal(-2), literal("paid")
    ('TRUE', '(-2)', "'paid'")
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return f"({value})" if value < 0 else str(value)
    quoted = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{quoted}'"


def _check(
    library: Library, source: SqlText, key: str, problems: list[LakehouseError]
) -> str | None:
    """The expansion of a macro or ephemeral view by itself; None if it is invalid."""
    try:
        return library.expand(source, inside=(key,))
    except LakehouseError as error:
        _tell(problems, error)
    return None


def _all(
    found: Mapping[str, _Sql], library: Library, problems: list[LakehouseError]
) -> dict[str, _Sql]:
    """The definitions with everything expanded; those with errors stay as written."""
    made = {}
    for name, one in found.items():
        try:
            padded = library.expand(SqlText(one.file, one.padded))
        except LakehouseError as error:
            _tell(problems, error)
            continue
        same = padded == one.padded
        made[name] = one if same else replace(one, padded=padded, sql=padded.strip())
    return made


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return index
    return len(tokens) - 1


def _arguments(plain: str, tokens: Sequence[Token], used: _Use) -> Iterator[str]:
    """The argument texts of a call."""
    depth, start = 0, tokens[used.first + 1].end + 1
    if used.last == used.first + 2:
        return
    for token in tokens[used.first + 2 : used.last]:
        kind = token.token_type
        depth += kind in {TokenType.L_PAREN, TokenType.L_BRACKET}
        depth -= kind in {TokenType.R_PAREN, TokenType.R_BRACKET}
        if kind is TokenType.COMMA and depth == 0:
            yield plain[start : token.start]
            start = token.end + 1
    yield plain[start : tokens[used.last].start]


def _filled(body: str, values: Mapping[str, str]) -> str:
    """The body with parameters replaced; a struct field of the same name is kept."""
    tokens = dialect().tokenize(body)
    made, at = "", 0
    for index, token in enumerate(tokens):
        behind_dot = index and tokens[index - 1].token_type is TokenType.DOT
        calls = tokens[index + 1 : index + 2]
        called = bool(calls) and calls[0].token_type is TokenType.L_PAREN
        value = values.get(token.text.lower())
        quoted = body[token.start] in "'\""
        if value is None or behind_dot or called or quoted:
            continue
        made += f"{body[at : token.start]}({value})"
        at = token.end + 1
    return made + body[at:]

"""Warnings about valid SQL that is probably not what its author meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from spark_jobs.errors import LakehouseError, SubjectError
from spark_jobs.graph.deprecated import deprecated_reads
from spark_jobs.graph.dialect import dialect
from spark_jobs.graph.manifest import GoldEntry, Manifest, SilverEntry
from spark_jobs.graph.parsing import SqlText, in_file, parse_select


class ImplicitAliasError(SubjectError):
    """Two columns without a comma between them, so that the second is an alias."""

    condition = "IMPLICIT_ALIAS"
    column: str
    alias: str
    primary = '{subject} selects "{column}" with the alias "{alias}", without AS'
    hint = "Is a comma missing before it? If you want an alias, write AS {alias}."


def doubts(manifest: Manifest, project_dir: Path) -> list[LakehouseError]:
    """Warnings about the SQL of a project that compiles."""
    found: list[LakehouseError] = []
    entries: list[SilverEntry | GoldEntry] = [*manifest.silver.values(), *manifest.gold.values()]
    for entry in entries:
        text = (project_dir / entry.file).read_text(encoding="utf-8-sig")
        source = in_file(entry.sql, file=entry.file, text=text)
        if source is not None:
            kind = "gold view" if isinstance(entry, GoldEntry) else "silver table"
            found += implicit_aliases(source, subject=f'{kind} "{entry.name}"')
            if isinstance(entry, GoldEntry):
                found += deprecated_reads(manifest, entry, source)
    return found


def implicit_aliases(source: SqlText, *, subject: str) -> Iterator[ImplicitAliasError]:
    """Columns that a SELECT renames without AS.

    Aliases of expressions are ignored, because a comma is rarely missing there.

    >>> text = SqlText("a.sql", "SELECT o.id status, COUNT(*) n FROM silver.orders o")
    >>> [found.alias for found in implicit_aliases(text, subject="")]
    ['status']

    Raises:
        LakehouseError: the text is not one SELECT.
    """
    tree = parse_select(source)
    tokens = list(dialect().tokenize(source.text))
    places = {token.start: at for at, token in enumerate(tokens)}
    for select in tree.find_all(exp.Select):
        for one in select.expressions:
            if not isinstance(one, exp.Alias) or not isinstance(one.this, exp.Column):
                continue
            name = one.args["alias"]
            at = places.get(name.meta.get("start", -1), 0)
            if at and tokens[at - 1].token_type is not TokenType.ALIAS:
                yield ImplicitAliasError(
                    subject, one.this.name, one.alias, location=source.at(tokens[at].start)
                )

"""Selects tables by name, tag, owner, file or state, with upstream and downstream tables.

One grammar for the command line and Airflow's forms: arguments are a union, comma-separated terms
an intersection. A pure function of the manifest, except for ``state:``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final, assert_never

from spark_jobs.errors import did_you_mean
from spark_jobs.graph.manifest import GoldEntry, Manifest, SilverEntry, SourceEntry
from spark_jobs.names import Layer, TableName
from spark_jobs.planning.errors import NothingSelectedError, SelectionSyntaxError

# The characters that a form accepts; ``parse_selection`` checks the syntax.
SELECTION: Final = r"[A-Za-z0-9_.*?/@ :+,-]{1,200}"
_TERM: Final = re.compile(
    r"(?P<up>\+)?(?:(?P<method>[a-z]+):)?(?P<value>[\w.*?/@-][\w.*?/@ -]*)(?P<down>\+)?"
)

_KINDS: Final = {
    Layer.BRONZE: "source",
    Layer.SILVER: "silver table",
    Layer.GOLD: "gold view",
}


class Method(StrEnum):
    """The property that a term compares."""

    NAME = "name"
    TAG = "tag"
    OWNER = "owner"
    PATH = "path"
    STATE = "state"


# What no table of a project may have; each has a name, a file and a state.
_OPTIONAL: Final = {Method.TAG: "a tag", Method.OWNER: "an owner"}


class State(StrEnum):
    """Values of ``state:``."""

    # The view is unpublished, or was published with another definition.
    CHANGED = "changed"


@dataclass(frozen=True, kw_only=True)
class Term:
    """One part of a selection.

    Attributes:
        upstream: include all tables that the selected ones read.
        downstream: include all tables that read the selected ones.
    """

    method: Method
    value: str
    upstream: bool = False
    downstream: bool = False


def parse_selection(text: str) -> tuple[Term, ...]:
    """The terms of one argument; a table must match all of them.

    >>> parse_selection("+user_revenue")[0].upstream
    True
    >>> [(one.method.value, one.value) for one in parse_selection("tag:finance,owner:growth")]
    [('tag', 'finance'), ('owner', 'growth')]

    Raises:
        SelectionSyntaxError: the text is not a selection.
    """
    return tuple(_term(part.strip(), text) for part in text.split(","))


def names_one_view(text: str) -> bool:
    """Whether an argument is just the name of a view.

    >>> names_one_view("gold.orders"), names_one_view("orders+"), names_one_view("silver.orders")
    (True, False, False)
    """
    return re.fullmatch(r"(?:gold\.)?\w+", text) is not None


def names_one_table(text: str) -> bool:
    """Whether an argument is just the name of a view or of a silver table.

    >>> names_one_table("orders"), names_one_table("silver.orders"), names_one_table("silver.*")
    (True, True, False)
    """
    return re.fullmatch(r"(?:(?:gold|silver)\.)?\w+", text) is not None


def selected_views(
    manifest: Manifest, texts: Iterable[str], *, changed: Callable[[], Collection[str]]
) -> tuple[str, ...]:
    """The gold views of a selection, upstream views first.

    Args:
        manifest: the project.
        texts: the arguments.
        changed: returns the views for ``state:changed``; called only if needed.

    Raises:
        SelectionSyntaxError: an argument is not a selection.
        NothingSelectedError: an argument selects no gold view.
    """
    found = selected_tables(manifest, texts, changed=changed, layers=(Layer.GOLD,))
    ordered = [entry for tier in manifest.gold_by_tier() for entry in tier]
    return tuple(entry.name for entry in ordered if str(entry.table_name) in found)


def selected_tables(
    manifest: Manifest,
    texts: Iterable[str],
    *,
    changed: Callable[[], Collection[str]],
    layers: Sequence[Layer],
) -> set[str]:
    """The tables of a selection, as ``layer.name``.

    Args:
        manifest: the project.
        texts: the arguments.
        changed: returns the views for ``state:changed``; called only if needed.
        layers: tables of other layers are left out.

    Raises:
        SelectionSyntaxError: an argument is not a selection.
        NothingSelectedError: an argument selects no table of these layers.
    """
    graph = _Graph.of(manifest)
    found: set[str] = set()
    for text in texts:
        terms = parse_selection(text)
        tables = set.intersection(*(graph.selected(term, changed) for term in terms))
        wanted = {name for name in tables if TableName.parse(name).layer in layers}
        if not wanted and not _may_be_empty(terms):
            kinds = " or ".join(_KINDS[layer] for layer in layers)
            raise NothingSelectedError(text, _remedy(terms, graph, tables, layers), wanted=kinds)
        found |= wanted
    return found


@dataclass(frozen=True)
class _Graph:
    """The tables of a project by name, with their upstream and downstream tables."""

    entries: dict[str, SourceEntry | SilverEntry | GoldEntry]
    reads: dict[str, set[str]]
    read_by: dict[str, set[str]]

    @classmethod
    def of(cls, manifest: Manifest) -> _Graph:
        entries: dict[str, SourceEntry | SilverEntry | GoldEntry] = {}
        reads: dict[str, set[str]] = {}
        for source in manifest.sources.values():
            entries[str(source.table_name)] = source
        for silver in manifest.silver.values():
            entries[str(silver.table_name)] = silver
            reads[str(silver.table_name)] = {f"bronze.{silver.source}"}
        for view in manifest.gold.values():
            entries[str(view.table_name)] = view
            reads[str(view.table_name)] = {*view.inputs}
        read_by: dict[str, set[str]] = {}
        for reader, inputs in reads.items():
            for one in inputs:
                read_by.setdefault(one, set()).add(reader)
        return cls(entries, reads, read_by)

    def selected(self, term: Term, changed: Callable[[], Collection[str]]) -> set[str]:
        """The tables of all layers that match a term."""
        found = self._fitting(term, changed)
        above = _reached(found, self.reads) if term.upstream else set()
        below = _reached(found, self.read_by) if term.downstream else set()
        return found | above | below

    def _fitting(self, term: Term, changed: Callable[[], Collection[str]]) -> set[str]:
        value = term.value
        match term.method:
            case Method.NAME:
                pattern = f"gold.{value}" if _is_short(term) else value
                return {name for name in self.entries if fnmatchcase(name, pattern)}
            case Method.TAG:
                named = ((name, entry.tags) for name, entry in self.entries.items())
                return {name for name, tags in named if _any_fits(tags, value)}
            case Method.OWNER:
                owners = ((name, entry.owner) for name, entry in self.entries.items())
                return {name for name, owner in owners if owner and _any_fits([owner], value)}
            case Method.PATH:
                # A directory matches all files below it.
                below = (value, f"{value.rstrip('/')}/*")
                files = ((name, entry.file) for name, entry in self.entries.items())
                return {name for name, file in files if any(fnmatchcase(file, p) for p in below)}
            case Method.STATE:
                return {f"gold.{view}" for view in changed()}
            case _:
                assert_never(term.method)

    def values(self, method: Method) -> list[str]:
        """All values of the property that a method compares."""
        match method:
            case Method.TAG:
                return sorted({tag for entry in self.entries.values() for tag in entry.tags})
            case Method.OWNER:
                return sorted({entry.owner for entry in self.entries.values() if entry.owner})
            case Method.PATH:
                return sorted({entry.file for entry in self.entries.values()})
            case Method.NAME:
                return sorted(self.entries)
            case Method.STATE:
                return sorted(State)
            case _:
                assert_never(method)


def _term(part: str, whole: str) -> Term:
    match = _TERM.fullmatch(part)
    if match is None:
        raise SelectionSyntaxError(whole, f"{part!r} is not a part of one")
    written = match["method"] or Method.NAME
    try:
        method = Method(written)
    except ValueError as error:
        near = did_you_mean(written, [*Method]) or ""
        raise SelectionSyntaxError(whole, f'there is no "{written}:". {near}'.strip()) from error
    value = match["value"].strip()
    if method is Method.STATE and value not in set(State):
        raise SelectionSyntaxError(whole, f'"state:" knows {", ".join(State)}, not "{value}"')
    return Term(
        method=method, value=value, upstream=bool(match["up"]), downstream=bool(match["down"])
    )


def _is_short(term: Term) -> bool:
    """Whether it is a view's name without its layer."""
    return term.method is Method.NAME and "." not in term.value


def _reached(start: set[str], edges: dict[str, set[str]]) -> set[str]:
    found, ahead = set(start), list(start)
    while ahead:
        for one in edges.get(ahead.pop(), set()) - found:
            found.add(one)
            ahead.append(one)
    return found


def _any_fits(values: Iterable[str], pattern: str) -> bool:
    return any(fnmatchcase(one, pattern) for one in values)


def _may_be_empty(terms: Sequence[Term]) -> bool:
    """Whether an empty result is fine: for ``state:changed``, but not for an unknown tag."""
    return any(term.method is Method.STATE for term in terms)


def _remedy(
    terms: Sequence[Term], graph: _Graph, tables: set[str], layers: Collection[Layer]
) -> str:
    if tables:
        (first, *_) = sorted(tables)
        return f'Write "{first}+" for the gold views that read it.'
    for term in terms:
        known = graph.values(term.method)
        if term.method is Method.NAME:
            # A table of another layer selects only what reads it.
            known = [
                name if TableName.parse(name).layer in layers else f"{name}+" for name in known
            ]
        word = f"gold.{term.value}" if _is_short(term) else term.value
        if not graph.selected(term, lambda: ()) and (near := did_you_mean(word, known)):
            return near
    known = graph.values(terms[0].method)
    if not known:
        return f"No table of the project has {_OPTIONAL[terms[0].method]}."
    return f"Known are {', '.join(known)}."

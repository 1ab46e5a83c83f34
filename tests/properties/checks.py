"""The tests of maintenance that need only DuckDB, for the mutation run."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from doctest import testmod
from functools import cache, partial
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

from spark_jobs.gold.engine.database import Duck, DuckError
from spark_jobs.graph import maintenance
from spark_jobs.graph.dialect import parse, to_sql
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.queries import translated
from spark_jobs.graph.last_step import DeleteInsert
from spark_jobs.graph.maintenance.derived import derived_program
from tests.golden.test_duck_values import GOLDEN, check_copies, load_edges, values_of
from tests.golden.test_rule_reads import READS, queries_of, reads
from tests.properties import test_rules, test_staged
from tests.properties.engine import Engine
from tests.properties.histories import run
from tests.properties.maintenance import InDuckDb, canonical
from tests.properties.tables import EXACT_TYPES
from tests.properties.test_duck import AsRefreshed
from tests.spark.duck_expressions import BEYOND, FAILING, REFUSED, TIED

Check = Callable[[], object]
RANDOM, AS_REFRESHED = 24, 24


def checks() -> dict[str, Check]:
    """The checks by name; each raises an error if it fails."""
    return {**_of_rules(), **_of_duck(), **_of_examples(), **_of_random_cases()}


def queries() -> dict[str, str]:
    """The canonical query of each check that has one."""
    rules = {f"rule: {name}": sql for name, (_, sql) in test_rules.RULES.items()}
    refused = {f"refused: {name}": sql for name, (_, sql) in test_rules.REFUSED.items()}
    return {name: canonical(sql) for name, sql in (rules | refused).items()}


def written(query: str) -> str:
    """The program of a canonical query as SQL, or why there is none."""
    tables = InDuckDb(frozenset(test_rules.INTS))
    types = test_rules.INTS
    try:
        found = derived_program(query, tables, {}, types=types, last=DeleteInsert(), prefix="")
    except Exception as error:  # noqa: BLE001 - of a mutant
        return repr(error)
    return "\n".join(to_sql(one) for one in queries_of(found))


def _of_rules() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for name, test in vars(test_rules).items():
        if name.startswith("test_") and list(signature(test).parameters) == ["engine"]:
            found[name] = partial(_with_engine, test)
    for name in test_rules.REFUSED:
        found[f"refused: {name}"] = partial(test_rules.test_what_has_no_rule_is_refused, name)
    clock = test_rules.test_a_clock_that_moves_lets_rows_in_and_out
    for name in test_rules.CLOCKS:
        found[f"clock: {name}"] = partial(_with_engine, clock, name)
    rule = test_rules.test_a_rule_holds_through_every_history
    for name in test_rules.RULES:
        found[f"rule: {name}"] = partial(_with_engine, rule, name)
        found[f"reads: {name}"] = partial(_same_reads, name)
    tied = test_rules.test_of_rows_that_tie_the_same_one_comes_first_each_time
    for name in test_rules.TIED:
        found[f"tied: {name}"] = partial(_with_engine, tied, name)
    for sql in test_rules.COMPUTED:
        test = test_rules.test_what_is_computed_with_is_neither_compared_nor_in_an_order
        found[f"computed: {sql}"] = partial(test, sql)
    for name in test_rules.GENERATORS:
        found[f"generator: {name}"] = partial(test_rules.test_rows_of_a_generator_have_no_key, name)
    return found


def _of_duck() -> dict[str, Check]:
    found: dict[str, Check] = {"duck: values": _same_values}
    for sql in REFUSED:
        found[f"duck: refused {sql}"] = partial(_refused, sql)
    for expression in (*FAILING, *BEYOND):
        found[f"duck: fails {expression}"] = partial(_fails, f"SELECT {expression} AS v FROM edges")
    for sql in TIED:
        found[f"duck: tied {sql}"] = partial(_fails, sql)
    for test in (test_staged.check_unkeyed, test_staged.check_keyed, test_staged.check_whole):
        found[f"staged: {test.__name__}"] = partial(_each, test)
    found["duck: copies"] = partial(_with_duck, check_copies)
    found["staged: faults"] = partial(_with_duck, test_staged.check_faults)
    return found


def _of_examples() -> dict[str, Check]:
    graph = Path(maintenance.__file__).parent.parent
    return {
        f"examples: {name}": partial(_examples, name)
        for package in ("maintenance", "duck")
        for path in sorted(graph.joinpath(package).glob("*.py"))
        if ">>>" in path.read_text("utf-8")
        for name in [f"{graph.name}.{package}.{path.stem}"]
    }


def _examples(module: str) -> None:
    testmod(import_module(f"spark_jobs.{module}"), raise_on_error=True)


def _of_random_cases() -> dict[str, Check]:
    found: dict[str, Check] = {}
    for seed in range(RANDOM):
        found[f"random: {seed}"] = partial(_random, seed)
    for seed in range(AS_REFRESHED):
        found[f"as refreshed: {seed}"] = partial(_as_refreshed, seed)
    return found


@cache
def _engine() -> Engine:
    return Engine()


@cache
def _refreshing() -> AsRefreshed:
    return AsRefreshed(Duck(memory="1 GiB", spill=Path(tempfile.gettempdir())))


def _with_engine(test: Callable[..., None], *arguments: str) -> None:
    test(_engine(), *arguments)


@cache
def _duck() -> Duck:
    duck = Duck(memory="1 GiB", spill=Path(tempfile.gettempdir()))
    load_edges(duck)
    return duck


def _with_duck(test: Callable[..., None], *arguments: int) -> None:
    test(_duck(), *arguments)


def _each(test: Callable[..., None]) -> None:
    for seed in range(test_staged.HISTORIES):
        test(_duck(), seed)


def _same_values() -> None:
    assert values_of(_duck()) == GOLDEN.read_text(encoding="utf-8")


def _same_reads(name: str) -> None:
    assert reads(name) in READS.read_text(encoding="utf-8").splitlines()


def _refused(sql: str) -> None:
    with pytest.raises(NotTranslatedError):
        translated(parse(sql), _duck().known)


def _fails(sql: str) -> None:
    found = translated(parse(sql), _duck().known)
    with pytest.raises(DuckError):
        _duck().fetch(found.sql)


def _random(seed: int) -> None:
    found = run(_engine(), seed)
    assert found.refused <= found.queries / 2, "a query has no rule any more"


def _as_refreshed(seed: int) -> None:
    engine = _refreshing()
    engine.tried, engine.refused = 0, Counter()
    run(engine, seed, EXACT_TYPES)

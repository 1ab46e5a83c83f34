"""A project directory over the tables: sources, the 22 views, settings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path

from benchmarks.tpch.tables import KEYS, generate
from spark_jobs.definitions.vocabulary import Strategy
from spark_jobs.sections import Engine

QUERIES = Path(__file__).with_name("queries")
NAMES = tuple(sorted(file.stem for file in QUERIES.glob("q*.sql")))
DATA = "data"
_SOURCE = """description: TPC-H's {name}, which another writer changes.
owner: benchmarks
format: delta
location: {data}/{name}
"""
_SETTINGS = "state_dir: state\n"


def write_project(
    folder: Path,
    *,
    scale: float,
    names: Iterable[str] = NAMES,
    strategies: Iterable[Strategy] = (Strategy.AUTO,),
    engines: Iterable[Engine] = (Engine.AUTO,),
) -> None:
    """Generate the tables and write the declarations.

    Args:
        folder: the project directory, with the tables in ``data`` and the state in ``state``.
        scale: TPC-H's scale factor.
        names: the queries that become views.
        strategies: one view of each query for each of them; ``view_of`` names it.
        engines: one view of each query and strategy for each of them.
    """
    generate(folder / DATA, scale=scale)
    _write(folder / "tidemark.yml", _SETTINGS)
    for name in KEYS:
        _write(folder / f"sources/{name}.yml", _SOURCE.format(name=name, data=DATA))
    for name, strategy, engine in product(names, strategies, engines):
        declared = f"refresh: bulk\nstrategy: {strategy}\n"
        text = definition(name, scale=scale).replace("refresh: bulk\n", declared, 1)
        _write(folder / f"sql/gold/{view_of(name, strategy, engine)}.sql", text)


def view_of(name: str, strategy: Strategy, engine: Engine = Engine.AUTO) -> str:
    """The view of a query with a declared strategy, for one engine setting.

    >>> view_of("q01", Strategy.AUTO), view_of("q01", Strategy.FULL, Engine.SPARK)
    ('q01', 'q01_full_spark')
    """
    declared = name if strategy is Strategy.AUTO else f"{name}_{strategy}"
    return declared if engine is Engine.AUTO else f"{declared}_{engine}"


def definition(name: str, *, scale: float) -> str:
    """The file of a view, including the header; q11's fraction depends on the scale."""
    text = (QUERIES / f"{name}.sql").read_text(encoding="utf-8")
    return text.replace(":fraction", f"{0.0001 / scale:.10f}")


def text_of(name: str, *, scale: float) -> str:
    """The SELECT alone, over tables called ``bronze.<name>``."""
    return definition(name, scale=scale).partition("*/\n")[2]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")

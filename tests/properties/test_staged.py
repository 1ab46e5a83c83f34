"""What is staged of a change, applied to the table as publishing does, gives the table after it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

import pytest

from spark_jobs.gold.compute.row_change import change_here
from spark_jobs.gold.engine.database import Duck, DuckError
from spark_jobs.graph.duck.errors import NotTranslatedError
from spark_jobs.graph.duck.kinds import kind_of
from spark_jobs.graph.duck.queries import Translated
from spark_jobs.graph.duck.staged import differing, keyed, unkeyed
from spark_jobs.graph.last_step import DeleteInsert, MergeByKey
from spark_jobs.storage.rows import RowChange
from tests.properties.tables import EXACT_TYPES, Multiset, Row, Rows, Types, plain, values_query

# Under names that the SQL of a change could have for columns of its own.
NAMES = ("here", "fewer", "copies", "copy", "p", "f")
TYPES = dict(zip(NAMES, EXACT_TYPES["silver.b"].values(), strict=True))
HISTORIES = 40


@pytest.fixture(scope="module")
def duck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Duck]:
    with Duck(memory="1 GiB", spill=tmp_path_factory.mktemp("spill")) as found:
        yield found


def no_spark() -> NoReturn:
    raise AssertionError("the rows are here")


def query(types: Types, rows: list[Row]) -> Translated:
    """Rows as a translated query."""
    kinds = {name: kind for name, text in types.items() if (kind := kind_of(text))}
    return Translated(values_query(types, rows), kinds)


def weighted(change: Multiset) -> Translated:
    """A change with its weights, narrower than the table it is for."""
    rows: list[Row] = [(*row, count) for row, count in change.items() if count]
    return query({**TYPES, "__w": "int"}, rows)


def applied(before: Multiset, change: RowChange) -> Multiset:
    """Every copy of a deleted row goes, then rows are inserted; with a key, by the key."""
    deleted, inserted = (
        [tuple(map(plain, row.values())) for row in rows.table.to_pylist()]
        for rows in (change.deleted, change.inserted)
    )
    assert (change.deletes, change.inserts) == (len(deleted), len(inserted))
    assert len(set(deleted)) == len(deleted), "a row is deleted twice"
    assert all(before[row] for row in deleted), "a row is deleted that is not there"
    after = Counter({row: count for row, count in before.items() if row not in set(deleted)})
    after.update(inserted)
    return after


def step(seed: int) -> tuple[Multiset, Multiset, Multiset]:
    """A table before, how it changes, and after."""
    rng = random.Random(seed)
    rows = Rows(rng, TYPES)
    before = rows.multiset(10) if seed % 7 else Counter()
    change = Counter({row: count for row, count in rows.change(before).items() if count})
    after = Counter(before)
    after.update(change)
    return before, change, +after


def check_unkeyed(duck: Duck, seed: int) -> None:
    """A table without a key."""
    before, change, after = step(seed)
    duck.compute("published", query(TYPES, list(before.elements())))
    rows = duck.fetch(unkeyed(weighted(change), TYPES, "published"))
    assert (
        applied(before, change_here(rows, kinds=TYPES, step=DeleteInsert(), spark=no_spark))
        == after
    )


def check_keyed(duck: Duck, seed: int) -> None:
    """A table of which each row is there once."""
    before, _, after = (Counter(dict.fromkeys(one, 1)) for one in step(seed))
    change = Counter(after)
    change.subtract(before)
    rows = duck.fetch(keyed(weighted(change), TYPES))
    by_key = MergeByKey(NAMES)
    found = change_here(rows, kinds=TYPES, step=by_key, spark=no_spark)
    assert applied(before, found) == after
    assert found.step == by_key


def check_whole(duck: Duck, seed: int) -> None:
    """A table that was computed as a whole."""
    before, _, after = step(seed)
    duck.compute("published", query(TYPES, list(before.elements())))
    duck.compute("staged", query(TYPES, list(after.elements())))
    which, inserted = (duck.fetch(sql) for sql in differing("staged", "published", list(TYPES)))
    deleted = Counter(tuple(map(plain, row.values())) for row in which.to_pylist())
    assert set(deleted) == {row for row in {*before, *after} if before[row] != after[row]}
    assert max(deleted.values(), default=1) == 1
    result = Counter({row: count for row, count in before.items() if row not in deleted})
    result.update(tuple(map(plain, row.values())) for row in inserted.to_pylist())
    assert result == after


def check_faults(duck: Duck) -> None:
    """What cannot be is an error, and no result."""
    row = Rows(random.Random(0), TYPES).row()
    duck.compute("published", query(TYPES, [row]))
    with pytest.raises(DuckError, match="a row to delete is not there"):
        duck.fetch(unkeyed(weighted(Counter({row: -2})), TYPES, "published"))
    for count in (2, -2):
        with pytest.raises(DuckError, match="comes twice"):
            duck.fetch(keyed(weighted(Counter({row: count})), TYPES))
    with pytest.raises(NotTranslatedError, match="missing"):
        keyed(weighted(Counter()), {**TYPES, "missing": "int"})
    with pytest.raises(NotTranslatedError):
        keyed(weighted(Counter()), {**TYPES, "here": "array<int>"})


def test_a_change_of_a_table_without_a_key_is_staged(duck: Duck) -> None:
    for seed in range(HISTORIES):
        check_unkeyed(duck, seed)


def test_a_change_of_a_table_with_a_key_is_staged(duck: Duck) -> None:
    for seed in range(HISTORIES):
        check_keyed(duck, seed)


def test_what_differs_of_a_whole_table_is_staged(duck: Duck) -> None:
    for seed in range(HISTORIES):
        check_whole(duck, seed)


def test_a_change_that_cannot_be_is_an_error(duck: Duck) -> None:
    check_faults(duck)

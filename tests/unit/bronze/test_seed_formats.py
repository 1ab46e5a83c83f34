"""Seeds as JSON Lines and Parquet: the same types, checks and loads as those of CSV."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet

from spark_jobs.bronze.errors import SeedRejectedError
from spark_jobs.bronze.seed_file import read_seed
from spark_jobs.bronze.seed_table import Loaded, load_seed
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import LakehouseError, ProblemsError
from spark_jobs.graph.errors import SeedUnreadableError
from spark_jobs.graph.manifest import Column
from spark_jobs.graph.parquet_columns import MOST_BYTES
from spark_jobs.settings import load_settings
from spark_jobs.storage.compiled import compiled
from spark_jobs.storage.lake import Lake
from spark_jobs.storage.small_tables import sync_rows

SOURCE = """\
format: {form}
path: seeds/rates.{form}
keys: country
most_rejected: 0.5
columns:
  country: STRING
  rate: {{type: "DECIMAL(6,4)", required: true}}
  note: STRING
"""
Row = tuple[str | None, str | None, str | None]
FIRST: list[Row] = [("de", "0.19", None), ("fr", "0.2", "vat")]
FORMATS = ["jsonl", "parquet"]
# Every type of a seed with a value of it.
VALUES: dict[str, Any] = {
    "boolean": True,
    "tinyint": -128,
    "smallint": 32_767,
    "int": -(2**31),
    "bigint": 2**63 - 1,
    "decimal(38,10)": Decimal("1234567890123456789012345678.0123456789"),
    "double": 1e-7,
    "string": "a\u2028\u00e9",
    "date": date(2024, 2, 29),
    "timestamp": datetime(2024, 1, 1, 10, tzinfo=UTC),
    "timestamp_ntz": datetime.fromisoformat("2024-01-01T10:00:00.000001"),
}


def parquet_bytes(columns: dict[str, pa.Array], **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink, **options)
    return sink.getvalue().to_pybytes()


def file_of(form: str, rows: list[Row], names: str = "country rate note") -> bytes:
    columns = names.split()
    if form == "jsonl":
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
        return "".join(f"{line}\n" for line in lines).encode()
    kinds = (pa.string(), pa.decimal128(20, 6), pa.string())
    exact = [(a, None if b is None else Decimal(b), c) for a, b, c in rows]
    arrays = zip(*exact, strict=True)
    return parquet_bytes(
        {
            name: pa.array(values, kind)
            for name, values, kind in zip(columns, arrays, kinds, strict=True)
        }
    )


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "shop"
    for name in ("sources", "seeds"):
        (folder / name).mkdir(parents=True)
    (folder / "sources" / "rates.yml").write_text(SOURCE.format(form=form))
    return folder


@pytest.fixture
def load(project: Path, form: str) -> Callable[[bytes], Loaded]:
    def loaded(content: bytes) -> Loaded:
        (project / "seeds" / f"rates.{form}").write_bytes(content)
        settings = load_settings(project)
        return load_seed(settings, compiled(settings).sources["rates"])

    return loaded


def rows(project: Path, quarantine: bool = False) -> list[dict[str, Any]]:
    lake = Lake(load_settings(project).lake)
    where = lake.quarantine("seed-rates") if quarantine else f"{lake.root}/bronze/rates"
    found = DeltaTable(where).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: str(next(iter(row.values()))))


def read(
    form: SourceFormat, content: bytes, kinds: dict[str, str]
) -> tuple[list[tuple[Any, ...]], list[tuple[int, str]]]:
    columns = [Column(name=name, type=kind) for name, kind in kinds.items()]
    found = read_seed("seeds/x", content, columns, ["k"], form=form)
    values = [tuple(row.values()) for row in found.rows.to_pylist()]
    return values, [(one.line, one.reason) for one in found.rejected]


def read_json(*lines: str, kind: str = "string") -> tuple[list[Any], list[tuple[int, str]]]:
    content = "\n".join(lines).encode()
    return read(SourceFormat.JSONL, content, {"k": "int", "v": kind})


def read_parquet(
    values: pa.Array, kind: str, **options: Any
) -> tuple[list[Any], list[tuple[int, str]]]:
    content = parquet_bytes({"k": pa.array(range(len(values))), "v": values}, **options)
    found, bad = read(SourceFormat.PARQUET, content, {"k": "int", "v": kind})
    return [value for _, value in found], bad


def raw(value: int, kind: pa.DataType) -> pa.Array:
    """A value of a time type that Python cannot write."""
    return pa.array([value], pa.int64()).cast(kind)


@pytest.mark.parametrize(("kind", "value"), VALUES.items())
def test_json_has_every_type(kind: str, value: Any) -> None:
    plain = value if isinstance(value, bool | int | float | str) else str(value)
    written = str(value) if kind.startswith("decimal") else json.dumps(plain)
    line = f'{{"k": 1, "v": {written}}}'
    assert read_json(line, '{"k": 2, "v": null}', '{"k": 3}', kind=kind) == (
        [(1, value), (2, None), (3, None)],
        [],
    )


@pytest.mark.parametrize(("kind", "value"), VALUES.items())
def test_parquet_has_every_type(kind: str, value: Any) -> None:
    types = {"decimal(38,10)": pa.decimal128(38, 10), "timestamp": pa.timestamp("us", "UTC")}
    array = pa.array([value, None], types.get(kind))
    assert read_parquet(array, kind) == ([value, None], [])


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("int", '"7"', 7),
        ("string", "0.10", "0.10"),
        ("string", "true", "true"),
        ("boolean", '"false"', False),
        ("decimal(6,5)", "1e-05", Decimal("0.00001")),
        ("decimal(6,5)", "0e-05", Decimal("0.00000")),
        # Its digits would fill the memory.
        ("decimal(6,5)", "0e-999999999999", Decimal("0.00000")),
        ("decimal(5,2)", '"0.190"', Decimal("0.19")),
        ("double", "7", 7.0),
    ],
)
def test_a_text_with_a_number_is_a_number(kind: str, written: str, value: Any) -> None:
    assert read_json(f'{{"k": 1, "v": {written}}}', kind=kind) == ([(1, value)], [])


@pytest.mark.parametrize(
    ("kind", "written", "reason"),
    [
        ("int", "1.0", "v: '1.0': it is not an integer"),
        ("int", "true", "v: 'true': it is not an integer"),
        ("tinyint", "128", "v: '128': it is out of the type's range"),
        ("decimal(6,4)", "0.19001", "v: '0.19001': it has more than 4 digits after the point"),
        ("decimal(6,4)", "1e999999999", "v: '1e999999999': it is not a decimal number"),
        ("decimal(6,4)", f"1e{10**20}", f"v: '1e{10**20}': it is not a decimal number"),
        ("double", "1e999", "v: '1e999': it is not a finite number"),
        ("double", "NaN", "it is not JSON: NaN is no value"),
        ("string", "[1]", "v: '[\"1\"]': it is an object or an array"),
        ("string", '{"a": 1}', 'v: \'[["a", "1"]]\': it is an object or an array'),
        ("string", '"\\ud800"', "v is not UTF-8"),
        ("date", '"2023-02-29"', "v: '2023-02-29': day is out of range for month"),
    ],
)
def test_a_json_value_of_another_type_is_rejected(kind: str, written: str, reason: str) -> None:
    values, bad = read_json(f'{{"k": 1, "v": {written}}}', kind=kind)
    assert values == []
    # Releases of Python explain a date differently.
    assert [(line, told[: len(reason)] if kind != "date" else reason) for line, told in bad] == [
        (1, reason)
    ]


def test_a_line_that_is_no_row_is_rejected_with_its_number() -> None:
    content = (
        b'\xef\xbb\xbf{"v": "a", "k": 1}\r\n\n'
        b'{"k": 2\n[3]\n{"k": 4, "w": 1}\n{"k": 5, "k": 5}\n{"k": 1}\n{"v": "x"}\n\xff\n'
        + b"[" * 100_000
        + b'\n{"k": 9, "v": ""}'
    )
    values, bad = read(SourceFormat.JSONL, content, {"k": "int", "v": "string"})
    assert values == [(1, "a"), (9, "")]
    assert [(line, told.partition(": ")[0]) for line, told in bad] == [
        (3, "it is not JSON"),
        (4, "it is not an object"),
        (5, "'w' is no declared column"),
        (6, "k is there twice"),
        (7, "line 1 has the same key"),
        (8, "k is missing"),
        (9, "it is not UTF-8"),
        (10, "it is not JSON"),
    ]


@pytest.mark.parametrize(
    ("kind", "array", "value"),
    [
        ("tinyint", pa.array([7], pa.uint64()), 7),
        ("decimal(5,2)", pa.array([7], pa.int64()), Decimal("7.00")),
        ("decimal(5,2)", pa.array([Decimal("1.5000")], pa.decimal256(60, 4)), Decimal("1.50")),
        ("double", pa.array([0.5], pa.float32()), 0.5),
        ("double", pa.array([-7], pa.int32()), -7.0),
        ("string", pa.array(["a"], pa.large_string()), "a"),
        ("string", pa.array(["a"]).dictionary_encode(), "a"),
        ("int", pa.nulls(1), None),
        (
            "timestamp",
            pa.array([datetime(2024, 1, 1, tzinfo=UTC)], pa.timestamp("ns", "Europe/Berlin")),
            datetime(2024, 1, 1, tzinfo=UTC),
        ),
        (
            "timestamp_ntz",
            raw(-1, pa.timestamp("ms")),
            datetime.fromisoformat("1969-12-31T23:59:59.999"),
        ),
    ],
)
def test_other_types_of_parquet_are_converted(kind: str, array: pa.Array, value: Any) -> None:
    assert read_parquet(array, kind) == ([value], [])


def test_a_timestamp_as_spark_writes_it_has_the_zone_utc() -> None:
    at = datetime(9999, 1, 1, tzinfo=UTC)
    array = pa.array([at.replace(tzinfo=None)], pa.timestamp("us"))
    options = {"use_deprecated_int96_timestamps": True}
    assert read_parquet(array, "timestamp", **options) == ([at], [])


@pytest.mark.parametrize(
    ("kind", "array", "reason"),
    [
        ("tinyint", pa.array([128]), "v: '128': it is out of the type's range"),
        (
            "decimal(5,2)",
            pa.array([Decimal("1.234")]),
            "v: '1.234': it has more than 2 digits after the point",
        ),
        ("double", pa.array([float("nan")]), "v: 'nan': it is not a finite number"),
        (
            "string",
            pa.array([b"\xff"]).cast(pa.string(), safe=False),
            "v is not UTF-8",
        ),
        (
            "timestamp",
            raw(1, pa.timestamp("ns", "UTC")),
            "v: '1970-01-01 00:00:00.000000001Z': it has more than 6 digits of a second",
        ),
        (
            "timestamp_ntz",
            raw(253402300800, pa.timestamp("s")),
            "v: '10000-01-01 00:00:00.000': it is out of range",
        ),
        (
            "date",
            pa.array([2932897], pa.int32()).cast(pa.date32()),
            "v: '10000-01-01': it is out of range",
        ),
    ],
)
def test_a_parquet_value_out_of_range_is_rejected(kind: str, array: pa.Array, reason: str) -> None:
    assert read_parquet(array, kind) == ([], [(1, reason)])


def test_a_load_commits_only_rows_that_differ(
    load: Callable[[bytes], Loaded], project: Path, form: str
) -> None:
    assert load(file_of(form, FIRST)).inserted == 2
    assert load(file_of(form, FIRST)) == Loaded("rates", 0, 0, 0, 0, 0)
    assert load(file_of(form, FIRST[::-1])) == Loaded("rates", 0, 0, 0, 0, 0)
    done = load(file_of(form, [("fr", "0.21", "vat"), ("it", "0.22", "")]))
    assert (done.inserted, done.updated, done.deleted, done.version) == (1, 1, 1, 1)
    assert rows(project) == [
        {"country": "fr", "rate": Decimal("0.2100"), "note": "vat"},
        {"country": "it", "rate": Decimal("0.2200"), "note": ""},
    ]


def test_the_same_rows_in_another_format_change_nothing(
    load: Callable[[bytes], Loaded], project: Path, form: str
) -> None:
    load(file_of(form, FIRST))
    other = "parquet" if form == "jsonl" else "jsonl"
    (project / "sources" / "rates.yml").write_text(SOURCE.format(form=other))
    (project / "seeds" / f"rates.{other}").write_bytes(file_of(other, FIRST))
    settings = load_settings(project)
    source = compiled(settings).sources["rates"]
    assert load_seed(settings, source) == Loaded("rates", 0, 0, 0, 0, 0)


def test_bad_rows_go_to_quarantine_until_the_file_is_corrected(
    load: Callable[[bytes], Loaded], project: Path, form: str
) -> None:
    done = load(file_of(form, [*FIRST, ("it", "0.000001", None)]))
    assert (done.inserted, done.rejected) == (2, 1)
    (bad,) = rows(project, quarantine=True)
    assert bad["line"] == 3
    assert bad["reason"] == "rate: '0.000001': it has more than 4 digits after the point"
    assert json.loads(bad["text"]) == {"country": "it", "rate": "0.000001", "note": None}
    load(file_of(form, FIRST))
    assert rows(project, quarantine=True) == []


def test_too_many_bad_rows_refuse_the_load(
    load: Callable[[bytes], Loaded], project: Path, form: str
) -> None:
    load(file_of(form, FIRST))
    word = "rows" if form == "parquet" else "lines"
    with pytest.raises(SeedRejectedError, match=f"2 of 3 {word}") as refused:
        load(file_of(form, [("de", None, None), (None, "0.1", None), ("it", "0.2", None)]))
    assert refused.value.first == f"{word[:-1].capitalize()} 1: rate is missing"
    assert len(rows(project)) == 2


def problems(load: Callable[[bytes], Loaded], content: bytes) -> list[LakehouseError]:
    with pytest.raises(ProblemsError) as refused:
        load(content)
    return list(refused.value.problems)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ("country rate remark", "it lacks 'note' and also has 'remark'"),
        ("Country rate note", "it lacks 'country' and also has 'Country'"),
    ],
)
def test_a_file_with_other_columns_is_refused(
    load: Callable[[bytes], Loaded], form: str, names: str, problem: str
) -> None:
    (one,) = problems(load, file_of(form, FIRST, names))
    assert (one.condition, getattr(one, "problem", "")) == ("SEED_HEADER", problem)
    place = one.location
    assert place is not None
    assert (place.file, place.line) == (f"seeds/rates.{form}", 1 if form == "jsonl" else None)


@pytest.mark.parametrize(
    ("form", "change", "condition"),
    [
        (form, change, condition)
        for form in FORMATS
        for change, condition in [
            (("path: seeds/rates", "path: seeds/none"), "SEED_FILE"),
            (("path: seeds/rates", "path: rates"), "SEED_FILE"),
            (("path: seeds/rates", "path: seeds/csv.csv #"), "SEED_FILE"),
            (("note: STRING", "note: BINARY"), "UNEXPECTED_VALUE"),
            (("keys: country\n", ""), "MISSING_KEY"),
            (("keys: country", "keys: country\ntopic: t"), "KEY_NOT_APPLICABLE"),
        ]
    ],
    indirect=["form"],
)
def test_a_declaration_is_checked(
    load: Callable[[bytes], Loaded],
    project: Path,
    form: str,
    change: tuple[str, str],
    condition: str,
) -> None:
    (project / "sources" / "rates.yml").write_text(SOURCE.format(form=form).replace(*change))
    assert [one.condition for one in problems(load, file_of(form, FIRST))] == [condition]


def test_a_file_that_is_too_large_is_refused(load: Callable[[bytes], Loaded]) -> None:
    (one,) = problems(load, b" " * (MOST_BYTES + 1))
    assert one.condition == "SEED_FILE"


@pytest.mark.parametrize("form", ["jsonl"], indirect=True)
def test_a_column_may_be_missing_from_a_line_of_json_but_not_from_all(
    load: Callable[[bytes], Loaded], project: Path
) -> None:
    told = load(b'{"country": "de", "rate": 0.19}\n{"country": "fr", "rate": 0.2, "note": "vat"}\n')
    assert told.inserted == 2
    assert [row["note"] for row in rows(project)] == [None, "vat"]
    (one,) = problems(load, b'\n{"country": "de", "rate": 0.19}\n')
    assert getattr(one, "problem", "") == "it lacks 'note'"
    assert one.location is not None
    assert one.location.line == 2
    (one,) = problems(load, b'{"country": "de", "rate": 1, "note": "", "rate": 2}\n')
    assert getattr(one, "problem", "") == "it repeats 'rate'"


@pytest.mark.parametrize("form", ["jsonl"], indirect=True)
def test_a_file_without_lines_is_an_empty_table(
    load: Callable[[bytes], Loaded], project: Path
) -> None:
    load(b"")
    assert rows(project) == []


@pytest.mark.parametrize("form", ["parquet"], indirect=True)
@pytest.mark.parametrize(
    ("kind", "declared", "found"),
    [
        (pa.float64(), "DECIMAL(6,4)", "DOUBLE"),
        (pa.int64(), "DOUBLE", "BIGINT"),
        (pa.decimal128(9, 2), "INT", "DECIMAL(9,2)"),
        (pa.string(), "DATE", "STRING"),
        (pa.binary(), "STRING", "BINARY"),
        (pa.int32(), "STRING", "INT"),
        (pa.int8(), "BOOLEAN", "TINYINT"),
        (pa.timestamp("us"), "TIMESTAMP", "TIMESTAMP_NTZ"),
        (pa.timestamp("us", "UTC"), "TIMESTAMP_NTZ", "TIMESTAMP"),
        (pa.timestamp("us", "UTC"), "DATE", "TIMESTAMP"),
        (pa.list_(pa.string()), "STRING", "LIST<ELEMENT: STRING>"),
    ],
)
def test_a_column_of_an_unfit_type_is_refused_where_it_is_declared(
    load: Callable[[bytes], Loaded], project: Path, kind: pa.DataType, declared: str, found: str
) -> None:
    source = SOURCE.format(form="parquet").replace("note: STRING", f'note: "{declared}"')
    (project / "sources" / "rates.yml").write_text(source)
    columns = {"country": ["de"], "rate": [Decimal("0.1")], "note": pa.nulls(1, kind)}
    (one,) = problems(load, parquet_bytes(columns))
    assert one.condition == "SEED_TYPE"
    assert (getattr(one, "declared", ""), getattr(one, "found", "")) == (declared, found)
    assert str(one.location) == "sources/rates.yml:8:3"


@pytest.mark.parametrize("form", ["parquet"], indirect=True)
def test_what_is_not_parquet_or_too_large_unpacked_is_refused(
    load: Callable[[bytes], Loaded],
) -> None:
    (one,) = problems(load, b"country,rate,note\n")
    assert one.condition == "SEED_UNREADABLE"
    many = pa.nulls(MOST_BYTES // 3 + 1, pa.string())
    (one,) = problems(load, parquet_bytes({"country": many, "rate": many, "note": many}))
    assert "larger than 64 MiB when it is unpacked" in one.primary


def test_a_damaged_page_refuses_the_load() -> None:
    table = {"k": pa.array(range(1000))}
    content = bytearray(parquet_bytes(table, write_page_checksum=True))
    content[100:600] = bytes(500)
    with pytest.raises(SeedUnreadableError) as refused:
        read(SourceFormat.PARQUET, bytes(content), {"k": "int"})
    assert refused.value.hint == "Write the file again. The table does not change."


def test_a_row_with_nan_is_the_same_at_the_next_load(tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    kinds = pa.schema({"k": pa.float64(), "x": pa.float64(), "many": pa.list_(pa.float64())})

    def loaded(*rows: tuple[float, float, list[float]]) -> tuple[int, int, int]:
        found = [dict(zip(kinds.names, row, strict=True)) for row in rows]
        done = sync_rows(
            pa.Table.from_pylist(found, kinds), location, keys=["k"], comments={}, writer="w"
        )
        return done.inserted, done.updated, done.deleted

    first = (1.0, nan, [nan, 1.0])
    assert loaded(first, (nan, 1.0, [])) == (2, 0, 0)
    assert loaded(first, (nan, 1.0, [])) == (0, 0, 0)
    assert loaded((1.0, nan, [nan, 2.0]), (nan, 1.0, [])) == (0, 1, 0)

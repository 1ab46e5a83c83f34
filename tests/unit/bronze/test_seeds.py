"""Seed files: read exactly, rejected by line, and committed only where rows differ."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from spark_jobs.bronze.errors import SeedRejectedError
from spark_jobs.bronze.seed_file import read_seed
from spark_jobs.bronze.seed_table import Loaded, load_seed
from spark_jobs.bronze.seed_values import reader
from spark_jobs.cli.main import app
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.errors import ProblemsError
from spark_jobs.graph.errors import SeedUnreadableError
from spark_jobs.graph.manifest import Column
from spark_jobs.settings import load_settings
from spark_jobs.silver.errors import SourceUnknownError
from spark_jobs.state.errors import TableLockedError
from spark_jobs.state.locks import table_lock
from spark_jobs.storage.compiled import compiled
from spark_jobs.storage.lake import Lake, lock_directory

SOURCE = """\
format: csv
path: seeds/rates.csv
keys: country
most_rejected: 0.5
columns:
  country: STRING
  rate: {type: "DECIMAL(30,10)", required: true}
  note: STRING
"""
ROWS = "country,rate,note\nde,0.19,\nfr,0.2,vat\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    folder = tmp_path / "shop"
    for name, text in {"sources/rates.yml": SOURCE, "seeds/rates.csv": ROWS}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def loaded(project: Path, text: str | None = None) -> Loaded:
    if text is not None:
        (project / "seeds" / "rates.csv").write_text(text)
    settings = load_settings(project)
    return load_seed(settings, compiled(settings).sources["rates"])


def location(project: Path, quarantine: bool = False) -> str:
    lake = Lake(load_settings(project).lake)
    return lake.quarantine("seed-rates") if quarantine else f"{lake.root}/bronze/rates"


def rows(where: str) -> list[dict[str, Any]]:
    found = DeltaTable(where).to_pyarrow_table().to_pylist()
    return sorted(found, key=lambda row: str(next(iter(row.values()))))


def read(text: bytes, kinds: str = "k:int v:string") -> tuple[list[Any], list[tuple[int, str]]]:
    columns = [
        Column(name=name, type=kind) for name, kind in (one.split(":") for one in kinds.split())
    ]
    found = read_seed("seeds/x.csv", text, columns, ["k"], form=SourceFormat.CSV)
    values = [tuple(row.values()) for row in found.rows.to_pylist()]
    return values, [(one.line, one.reason) for one in found.rejected]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("decimal(38,10)", "12345678901234567890.0123456789", "12345678901234567890.0123456789"),
        ("decimal(5,2)", "12.500", "12.50"),
        ("decimal(5,2)", "-0", "0.00"),
        ("decimal(38,0)", "9" * 38, "9" * 38),
    ],
)
def test_decimals_are_read_digit_by_digit(kind: str, text: str, value: str) -> None:
    assert str(reader(kind)(text)) == str(Decimal(value))


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("tinyint", "-128", -128),
        ("boolean", "TRUE", True),
        ("double", "1e3", 1000.0),
        ("string", " a ", " a "),
        ("date", "2024-02-29", date(2024, 2, 29)),
        ("timestamp", "2024-01-01T01:00:00+01:00", datetime(2024, 1, 1, tzinfo=UTC)),
        ("timestamp_ntz", "2024-01-01 00:00:00.5", datetime.fromisoformat("2024-01-01T00:00:00.5")),
    ],
)
def test_values_are_of_the_declared_type(kind: str, text: str, value: object) -> None:
    assert reader(kind)(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("tinyint", "128"),
        ("int", "1.0"),
        ("int", "\u0661"),
        ("decimal(5,2)", "1.234"),
        ("decimal(5,2)", "1000"),
        ("decimal(5,2)", "1e2"),
        ("double", "NaN"),
        ("double", "1e999"),
        ("boolean", "1"),
        ("date", "2023-02-29"),
        ("date", "20240101"),
        ("timestamp", "2024-01-01 00:00:00"),
        ("timestamp", "0001-01-01 00:00:00+12:00"),
        ("timestamp_ntz", "2024-01-01 00:00:00Z"),
        ("timestamp_ntz", "2024-01-01 25:00:00"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"^it |range|day|hour"):
        reader(kind)(text)


def test_null_is_nothing_and_a_quoted_field_is_text() -> None:
    values, bad = read(b'k,v\n1,\n2,""\n3,"a ""b"", c"\n')
    assert values == [(1, None), (2, ""), (3, 'a "b", c')]
    assert bad == []


def test_a_mark_windows_ends_and_another_order_are_read() -> None:
    assert read(b"\xef\xbb\xbfv,k\r\na,1\r\n\xc3\xa9,2\r\n") == ([(1, "a"), (2, "\u00e9")], [])


def test_a_bad_line_is_reported_with_its_number_after_multiline_values() -> None:
    text = b'k,v\n1,"a\nb\r\nc"\n2\nx,y\n3,a,b\n,z\n1,again\n4,\xff\n5,ok\n\n6,ok\n'
    values, bad = read(text)
    assert [one[0] for one in values] == [1, 5, 6]
    assert bad == [
        (5, "1 fields and not 2"),
        (6, "k: 'x': it is not an integer"),
        (7, "3 fields and not 2"),
        (8, "k is missing"),
        (9, "line 2 has the same key"),
        (10, "v is not UTF-8"),
        (12, "k is missing"),
    ]


def test_an_uneven_line_that_is_not_utf8_is_one_bad_line() -> None:
    text = b'\xef\xbb\xbfk,v\n1,a\n2,b,\xfc\n3,\xc3\xbc\n4,"d\n"\n5,\xfc\n'
    values, bad = read(text)
    assert values == [(1, "a"), (3, "\u00fc"), (4, "d\n")]
    assert bad == [(3, "3 fields and not 2"), (7, "v is not UTF-8")]


def test_a_file_without_rows_is_an_empty_table() -> None:
    assert read(b"k,v\n") == ([], [])
    assert read(b"k,v") == ([], [])


def test_a_load_commits_only_rows_that_differ(project: Path) -> None:
    assert loaded(project).inserted == 2
    assert loaded(project) == Loaded("rates", 0, 0, 0, 0, 0)
    done = loaded(project, "country,rate,note\nde,0.19,\nfr,0.21,vat\nit,0.22,\n")
    assert (done.inserted, done.updated, done.deleted, done.version) == (1, 1, 0, 1)
    feed = DeltaTable(location(project)).load_cdf(starting_version=1).read_all()
    told = sorted(map(str, (feed.column("_change_type").to_pylist())))
    assert told == ["insert", "update_postimage", "update_preimage"]
    done = loaded(project, "rate,country,note\n0.21,fr,vat\n0.22,it,\n")
    assert (done.inserted, done.updated, done.deleted, done.version) == (0, 0, 1, 2)
    assert rows(location(project)) == [
        {"country": "fr", "rate": Decimal("0.2100000000"), "note": "vat"},
        {"country": "it", "rate": Decimal("0.2200000000"), "note": None},
    ]


def test_null_and_empty_text_differ_on_reload(project: Path) -> None:
    loaded(project)
    assert loaded(project, 'country,rate,note\nde,0.190,""\nfr,0.2,vat\n').updated == 1
    assert rows(location(project))[0]["note"] == ""


def test_other_keys_and_another_format_continue_the_table(project: Path) -> None:
    loaded(project)
    source = project / "sources" / "rates.yml"
    source.write_text(SOURCE.replace("keys: country", "keys: rate"))
    assert loaded(project, "country,rate,note\nde,0.19,\nit,0.2,\n").updated == 1
    # Two rows share a key in the table as it is.
    loaded(project, "country,rate,note\nde,0.19,vat\nfr,0.2,vat\n")
    source.write_text(SOURCE.replace("keys: country", "keys: note"))
    assert loaded(project, "country,rate,note\nde,0.19,vat\nfr,0.2,gst\n").replaced
    lines = '{"country": "de", "rate": "0.19", "note": "vat"}\n'
    (project / "seeds" / "rates.jsonl").write_text(lines)
    source.write_text(SOURCE.replace("csv", "jsonl"))
    assert (loaded(project).deleted, len(rows(location(project)))) == (1, 1)


def test_other_columns_replace_the_table(project: Path) -> None:
    loaded(project)
    (project / "sources" / "rates.yml").write_text(SOURCE.replace("note: STRING", "note: INT"))
    done = loaded(project, "country,rate,note\nde,0.19,7\n")
    assert done.replaced
    assert rows(location(project)) == [
        {"country": "de", "rate": Decimal("0.1900000000"), "note": 7}
    ]


def test_bad_lines_go_to_quarantine_until_the_file_is_corrected(project: Path) -> None:
    done = loaded(project, ROWS + "it,x,\n")
    assert (done.inserted, done.rejected) == (2, 1)
    bad = {"line": 4, "reason": "rate: 'x': it is not a decimal number", "text": "it,x,"}
    assert rows(location(project, quarantine=True)) == [bad]
    loaded(project, ROWS)
    assert rows(location(project, quarantine=True)) == []


def test_too_many_bad_lines_refuse_the_load(project: Path) -> None:
    loaded(project)
    with pytest.raises(SeedRejectedError, match="2 of 3 lines"):
        loaded(project, "country,rate,note\nde,x,\nfr,y,\nit,1,\n")
    assert DeltaTable(location(project)).version() == 0
    assert len(rows(location(project))) == 2


def test_an_open_quote_refuses_the_load(project: Path) -> None:
    with pytest.raises(SeedUnreadableError):
        read(b'k,v\n1,"a\n2,b\n')


def test_one_load_writes_at_a_time(project: Path) -> None:
    settings = load_settings(project)
    locks = lock_directory(settings.lake, settings.state)
    with table_lock(locks, "bronze.rates"), pytest.raises(TableLockedError):
        loaded(project)


def test_the_command_loads_what_is_named(project: Path) -> None:
    def tidemark(*words: str) -> Any:
        return CliRunner().invoke(app, ["--project", str(project), *words])

    told = tidemark("seed")
    assert told.output == "bronze.rates: 2 inserted, 0 updated, 0 deleted, version 0\n"
    assert json.loads(tidemark("seed", "rates", "--json").output)[0]["inserted"] == 0
    assert "no row differs" in tidemark("seed", "bronze.rates").output
    # Like every other unknown name, not like a wrong command line.
    for word, hint in (
        ("other", "Sources are rates."),
        ("bronze.rate", 'Did you mean "rates"?'),
        ("", "Sources are rates."),
    ):
        unknown = tidemark("seed", word)
        assert isinstance(unknown.exception, SourceUnknownError)
        assert (unknown.exit_code, unknown.exception.hint) == (1, hint)


@pytest.mark.parametrize(
    ("change", "condition"),
    [
        (("seeds/rates.csv", "seeds/none.csv"), "SEED_FILE"),
        (("seeds/rates.csv", "seeds/../seeds/rates.csv"), "SEED_FILE"),
        (("seeds/rates.csv", "rates.csv"), "SEED_FILE"),
        (("seeds/rates.csv", "/etc/rates.csv"), "SEED_FILE"),
        (("seeds/rates.csv", "seeds/rates.tsv"), "SEED_FILE"),
        (("seeds/rates.csv", "seeds/link.csv"), "SEED_FILE"),
        (("seeds/rates.csv", "seeds/folder.csv"), "SEED_FILE"),
        (("note: STRING", "other: STRING"), "SEED_HEADER"),
        (("note: STRING", "note: ARRAY<INT>"), "UNEXPECTED_VALUE"),
        (("country: STRING", "country: DOUBLE"), "UNEXPECTED_VALUE"),
        (("most_rejected: 0.5", "most_rejected: 2"), "UNEXPECTED_VALUE"),
        (("keys: country", "keys: land"), "COLUMN_NOT_DECLARED"),
        (("keys: country\n", ""), "MISSING_KEY"),
        (("path: seeds/rates.csv\n", ""), "MISSING_KEY"),
        (("keys: country", "keys: country\ntopic: t"), "KEY_NOT_APPLICABLE"),
    ],
)
def test_a_declaration_is_checked(
    project: Path, tmp_path: Path, change: tuple[str, str], condition: str
) -> None:
    (tmp_path / "outside.csv").write_text(ROWS)
    (project / "seeds" / "link.csv").symlink_to(tmp_path / "outside.csv")
    (project / "seeds" / "folder.csv").mkdir()
    (project / "sources" / "rates.yml").write_text(SOURCE.replace(*change))
    with pytest.raises(ProblemsError) as refused:
        compiled(load_settings(project))
    assert [one.condition for one in refused.value.problems] == [condition]

"""Every class of record on a JSON topic and on a Debezium topic: a typed row or a reason."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from decimal import Context, Decimal
from fractions import Fraction
from hashlib import md5
from random import Random
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from spark_jobs.access.secrets import DEBEZIUM_PLACEHOLDER
from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.graph.manifest import Column, SourceEntry
from spark_jobs.silver.parse.documents import LAST
from spark_jobs.silver.parse.row_steps import row_steps
from spark_jobs.silver.parse.sequence import declared_sequence
from spark_jobs.silver.parse.shapes import SHAPE, Kind, read_shape
from spark_jobs.silver.parse.typed import IMAGE, typed_records
from tests.spark.silver.world import (
    CHANGES,
    EVENTS,
    ORDERS,
    Record,
    bronze,
    change,
    columns,
    event,
)

# What is compared is what a pipeline computes: Spark compiles it.
pytestmark = pytest.mark.usefixtures("compiled")

REJECTED: list[tuple[bytes, str, str | None]] = [
    (b"", "EMPTY_VALUE", None),
    (b"  \n", "EMPTY_VALUE", None),
    (b"x" * 1001, "OVERSIZED", "1001 bytes"),
    (b'{"event_id": "\xff"}', "NOT_UTF8", None),
    (b'{"event_id": "a"', "MALFORMED_JSON", None),
    (b'{"event_id": "a"} {"event_id": "b"}', "MALFORMED_JSON", None),
    (b'{"event_id": "a"}, {"event_id": "b"}', "MALFORMED_JSON", None),
    (b'{"event_id": "a"} rest', "MALFORMED_JSON", None),
    (b'{"event_id": "a"}, {}', "MALFORMED_JSON", None),
    (b'{"event_id": "a"}, {"last": 0}', "MALFORMED_JSON", None),
    (b'{"event_id": "a"},', "MALFORMED_JSON", None),
    (b"{'event_id': 'a'}", "MALFORMED_JSON", None),
    (b'{"event_id": "a", "amount": NaN}', "MALFORMED_JSON", None),
    (b'{"event_id": "\\ud800"}', "MALFORMED_JSON", None),
    (b"\x00\x00\x00\x00\x05abc", "MALFORMED_JSON", "a schema registry's framing"),
    (b'{"event_id": ' + b"[" * 480 + b"]" * 480 + b"}", "TOO_DEEP", None),
    (b"not json", "MALFORMED_JSON", None),
    (b"[]", "NOT_AN_OBJECT", None),
    (b'[{"event_id": "a"}]', "NOT_AN_OBJECT", None),
    (b"5", "NOT_AN_OBJECT", None),
    (b"null", "NOT_AN_OBJECT", None),
    (b"{}", "MISSING_REQUIRED", "event_id"),
    (b'{"EVENT_ID": "a"}', "MISSING_REQUIRED", "event_id"),
    (b'{"event_id": null}', "MISSING_REQUIRED", "event_id"),
    (b'{"event_id": "a", "user_id": "x"}', "TYPE_MISMATCH", "user_id"),
    (b'{"event_id": "a", "user_id": 1.5}', "TYPE_MISMATCH", "user_id"),
    (b'{"event_id": "a", "user_id": ""}', "TYPE_MISMATCH", "user_id"),
    (b'{"event_id": "a", "user_id": 9223372036854775808}', "TYPE_MISMATCH", "user_id"),
    (b'{"event_id": "a", "user_id": {"id": 1}}', "TYPE_MISMATCH", "user_id"),
    (b'{"event_id": "a", "amount": 12345678901.00}', "TYPE_MISMATCH", "amount"),
    (b'{"event_id": "a", "amount": 1.005}', "TYPE_MISMATCH", "amount"),
    (b'{"event_id": "a", "amount": 1e400}', "TYPE_MISMATCH", "amount"),
    (b'{"event_id": "a", "at": 1700000000}', "TYPE_MISMATCH", "at"),
    (b'{"event_id": "a", "at": "2024"}', "TYPE_MISMATCH", "at"),
    (b'{"event_id": "a", "at": "2024-02-30T00:00:00Z"}', "TYPE_MISMATCH", "at"),
    (b'{"event_id": "a", "at": "2024-02-03T00:00:00"}', "TYPE_MISMATCH", "at"),
    (b'{"event_id": "a", "at": "2024-02-03T00:00:00 Mars/Base"}', "TYPE_MISMATCH", "at"),
]


def typed(
    spark: SparkSession,
    records: list[Record],
    source: SourceEntry,
    *,
    placeholder: str = DEBEZIUM_PLACEHOLDER,
) -> list[dict[str, Any]]:
    frame = typed_records(bronze(spark, records), source, max_bytes=1000, placeholder=placeholder)
    rows = sorted(frame.collect(), key=lambda row: int(row["__offset"]))
    return [row.asDict(recursive=True) for row in rows]


def reason(row: dict[str, Any]) -> tuple[str, str | None] | None:
    problem = row["__problem"]
    return problem and (problem["reason"], problem["detail"])


def test_a_rejected_event_says_why(spark: SparkSession) -> None:
    rows = typed(spark, [(None, value) for value, _, _ in REJECTED], EVENTS)
    found = [
        (value, *(reason(row) or ())) for (value, _, _), row in zip(REJECTED, rows, strict=True)
    ]
    assert found == REJECTED


def test_an_accepted_event_keeps_its_values(spark: SparkSession) -> None:
    records = [
        (
            None,
            b'{"event_id":"a","user_id":"7","amount":12.5,"at":"2024-02-03T04:05:06.789+02:00"}',
        ),
        (None, b'{"event_id":1,"event_id":"last","more":1,"amount":"1.20","at":null}'),
        (b"\xff", '{"event_id":"\u202eemoji \U0001f600 \\u0000","amount":9999999999.99}'.encode()),
        (None, None),
    ]
    rows = typed(spark, records, EVENTS)
    assert [reason(row) for row in rows] == [None] * 4
    assert [row["event_id"] for row in rows] == ["a", "last", "\u202eemoji \U0001f600 \x00", None]
    assert [row["user_id"] for row in rows] == [7, None, None, None]
    assert rows[0]["at"].astimezone(UTC) == datetime(2024, 2, 3, 2, 5, 6, 789000, tzinfo=UTC)
    assert [row["amount"] for row in rows] == [
        Decimal("12.50"),
        Decimal("1.20"),
        Decimal("9999999999.99"),
        None,
    ]


# What is read as each type, and what does not fit it.
TYPES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("boolean", {"true": True, '"false"': False}, ['"yes"', "1", '"T"']),
    ("double", {"1": 1.0, "-2.5e3": -2500.0, '"3"': 3.0}, ['"NaN"', '"Infinity"', "1e400"]),
    (
        "date",
        dict.fromkeys(['"2024-02-29"', '"2024-02-29Z"'], datetime(2024, 2, 29).date()),  # noqa: DTZ001
        ['"2023-02-29"', '"2024-02-29ZZ"', '"2024"', "5"],
    ),
    (
        "decimal(38,6)",
        {"12345678901234567890.123456": Decimal("12345678901234567890.123456")},
        [],
    ),
    (
        "decimal(12,2)",
        {"1.5e2": Decimal("150.00"), '"0e-500"': Decimal("0.00"), "1E-2": Decimal("0.01")},
        ["1e-3", "1e10", '"15e-3"', '"1e1000"', '"1e"', '"e5"', '"1e2147483647"'],
    ),
    (
        "string",
        {
            "5": "5",
            '[1e5,"x"]': '[1e5,"x"]',
            '{"c":[{"d":1e400}]}': '{"c":[{"d":1e400}]}',
            '{"b":[1]}': '{"b":[1]}',
            '""': "",
        },
        [],
    ),
    # Numbers that a double cannot hold stay as they are written, also within JSON.
    (
        "string",
        {
            '{"b":[1e400,-1E-9,{"1e9":"2e9"}]}': '{"b":[1e400,-1E-9,{"1e9":"2e9"}]}',
            '"[1e400]"': "[1e400]",
            "1e-7": "1e-7",
            "9" * 39: "9" * 39,
        },
        [],
    ),
    ("map<string,string>", {'{"1e9":1e9}': {"1e9": "1e9"}}, []),
    ("double", {"1e-7": 1e-7, "0." + "1" * 60: 0.1111111111111111}, ["1e400"]),
    ("binary", {'"aGk="': b"hi"}, ['"%%%"']),
    ("varchar(3)", {'"abc"': "abc", '""': ""}, ['"abcd"']),
    (
        "array<bigint>",
        {"[1,2]": [1, 2], "[]": [], "null": None, '[null,"3"]': [None, 3]},
        ["{}", "5", '[1,"x"]', "[1.5]", "[[1]]", '[{"a":1}]', "[true]", '[""]'],
    ),
    ("array<int>", {"[2147483647]": [2147483647]}, ["[99999999999]", "[0,2147483648]"]),
    ("array<string>", {'["a",5,null]': ["a", "5", None]}, ['"a"']),
    (
        "array<decimal(4,2)>",
        {"[1.25]": [Decimal("1.25")]},
        ["[1.255]", "[100]", '["NaN"]', "[1e400]"],
    ),
    ("array<date>", {'["2024-02-29"]': [datetime(2024, 2, 29, tzinfo=UTC).date()]}, ["[5]"]),
    (
        "array<array<tinyint>>",
        {"[[1],[],null,[null]]": [[1], [], None, [None]]},
        ["[[1],2]", "[[1],[128]]", '[["x"]]', "[{}]"],
    ),
    (
        "struct<a:bigint>",
        {'{"a":1}': {"a": 1}, "{}": {"a": None}, '{"a":null,"b":5}': {"a": None}},
        ["[]", "5", '{"a":"x"}', '{"a":[1]}', '{"a":9223372036854775808}'],
    ),
    (
        "struct<`a b`:int,Id:struct<at:timestamp_ntz,ok:boolean>>",
        {
            '{"a b":7}': {"a b": 7, "Id": None},
            '{"Id":{"ok":true},"id":5}': {"a b": None, "Id": {"at": None, "ok": True}},
        },
        ['{"a b":"x"}', '{"Id":5}', '{"Id":{"ok":"yes"}}', '{"Id":{"at":"2024"}}'],
    ),
    (
        "array<struct<sku:string,n:int>>",
        {'[{"sku":"a","n":1},null,{}]': [{"sku": "a", "n": 1}, None, {"sku": None, "n": None}]},
        ["[5]", '[{"sku":"a","n":"x"}]', '[{"n":1},{"n":1e10}]', "[[]]", '["a"]'],
    ),
    (
        "map<string,int>",
        {'{"a":1,"b":null}': {"a": 1, "b": None}, "{}": {}, "null": None},
        ["[]", "5", '{"a":1,"b":"x"}', '{"a":99999999999}', '{"a":{}}'],
    ),
    (
        "map<string,array<struct<n:int>>>",
        {'{"a":[{"n":1}],"b":[]}': {"a": [{"n": 1}], "b": []}},
        ['{"a":[{"n":1}],"b":[{"n":[]}]}', '{"a":{}}', '{"a":[1]}'],
    ),
    (
        "map<int,string>",
        {'{"1":"x"}': {1: "x"}, "{}": {}, "null": None},
        ['{"x":"x"}', '{"1":"x","01":"y"}', "[]"],
    ),
    ("tinyint", {"127": 127}, ["128"]),
]


def test_types(spark: SparkSession) -> None:
    """A column for each type, and in each record a value for one of them."""
    names = [f"c{number}" for number in range(len(TYPES))]
    kinds = {name: kind for name, (kind, _, _) in zip(names, TYPES, strict=True)}
    source = SourceEntry(
        name="x", format=SourceFormat.JSON, topic="x", file="x", columns=columns(**kinds)
    )
    cases: list[tuple[str, str, Any, tuple[str, str] | None]] = []
    for name, (_, accepted, rejected) in zip(names, TYPES, strict=True):
        cases += [(name, text, value, None) for text, value in accepted.items()]
        cases += [(name, text, None, ("TYPE_MISMATCH", name)) for text in rejected]
    records: list[Record] = [(None, f'{{"{name}": {text}}}'.encode()) for name, text, *_ in cases]
    found = [
        (*case[:2], None if reason(row) else row[case[0]], reason(row))
        for case, row in zip(cases, typed(spark, records, source), strict=True)
    ]
    assert found == cases


def test_a_decimal_is_the_number_or_nothing(spark: SparkSession) -> None:
    """Python's fractions, which are exact, tell what fits."""
    random, kinds = Random(7), {"a": (12, 2), "b": (38, 10), "c": (3, 3)}

    def digits() -> str:
        return "".join(random.choice("0001259") for _ in range(random.choice((0, 2, 9, 30, 45))))

    texts = []
    for _ in range(1000):
        text = f"{random.choice(['', '-'])}{digits().lstrip('0') or '0'}"
        text += f".{digits()}0" if random.random() < 0.6 else ""
        text += f"e{random.randrange(-50, 50)}" if random.random() < 0.5 else ""
        texts.append(text)
    source = SourceEntry(
        name="x",
        format=SourceFormat.JSON,
        topic="x",
        file="x",
        columns=columns(**{name: f"decimal({kind[0]},{kind[1]})" for name, kind in kinds.items()}),
    )
    forms = [random.choice(("%s", '"%s"')) % text for text in texts]
    rows = typed(spark, [(None, f'{{"a":{t},"b":{t},"c":{t}}}'.encode()) for t in forms], source)
    for name, (precision, scale) in kinds.items():
        expected = [exactly(text, precision, scale) for text in texts]
        assert min(expected.count(None), len(texts) - expected.count(None)) > 50
        found = [row[name] for row in rows]
        assert list(zip(forms, found, strict=True)) == list(zip(forms, expected, strict=True))


def exactly(text: str, precision: int, scale: int) -> Decimal | None:
    number = Fraction(text) * 10**scale
    if number.denominator > 1 or abs(number) >= 10**precision:
        return None
    return Decimal(int(number)).scaleb(-scale, Context(prec=precision))


def test_malformed_numbers_are_malformed_json(spark: SparkSession) -> None:
    texts = ["{1e5:2}", '{"c":01e5}', '{"c":1e5 2}', '{"c":1e}', '{"c":+1e5}']
    rows = typed(spark, [(None, text.encode()) for text in texts], EVENTS)
    assert [reason(row) for row in rows] == [("MALFORMED_JSON", None)] * len(texts)


@pytest.mark.parametrize("source", [EVENTS, CHANGES], ids=["event", "change"])
def test_nanoseconds_are_cut(spark: SparkSession, source: SourceEntry) -> None:
    parts = columns(order_id="bigint", at="timestamp", local="timestamp_ntz")
    last = datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001
    image = {"order_id": 1, "at": f"{last}999Z", "local": f"{last}999"}
    record = change("u", 1, 200)
    record = event(**image) if source is EVENTS else with_value(record, after=image)
    declared = source.model_copy(update={"columns": parts, "event_id": None})
    [row] = typed(spark, [record], declared)
    assert row["at"].astimezone(UTC).replace(tzinfo=None) == row["local"] == last


def test_a_nested_misfit_of_a_change_says_why(spark: SparkSession) -> None:
    parts = columns(order_id="bigint", tags="array<int>", line="struct<n:int>")
    source = CHANGES.model_copy(update={"columns": parts})
    placed = change("u", 1, 200)
    images: list[dict[str, Any]] = [
        {"tags": [1, None], "line": {}},
        {"tags": None},
        {"tags": [1, "x"]},
        {"line": {"n": "x"}},
    ]
    records = [with_value(placed, after={"order_id": 1} | image) for image in images]
    deleted = with_value(change("d", 1, 300), before={"order_id": 1, "tags": ["x"]})
    rows = typed(spark, [*records, deleted], source)
    assert [reason(row) for row in rows] == [
        None,
        None,
        ("TYPE_MISMATCH", "tags"),
        ("TYPE_MISMATCH", "line"),
        None,
    ]
    assert rows[0]["tags"] == [1, None]
    assert rows[0]["line"] == {"n": None}


# A column's type, and the form in which the connector writes its placeholder into it.
UNAVAILABLE = {
    "c0": ("string", "text"),
    "c1": ("binary", "bytes"),
    "c2": ("array<string>", "texts"),
    "c3": ("array<bigint>", "numbers"),
    "c4": ("map<string,string>", "pairs"),
    "c5": ("array<string>", "identities"),
    "c6": ("array<binary>", "blobs"),
}


def test_a_value_that_the_database_did_not_send(spark: SparkSession) -> None:
    """In each record one column has the placeholder, of everyone or their own."""
    kinds = {name: kind for name, (kind, _) in UNAVAILABLE.items()}
    source = CHANGES.model_copy(update={"columns": columns(order_id="bigint", **kinds)})
    own = "__unavailable_0123456789abcdef"
    known: list[list[Record]] = [
        [
            with_value(change("u", 1, 200), after={"order_id": 1, name: placed(form, text)})
            for name, (_, form) in UNAVAILABLE.items()
        ]
        for text in (DEBEZIUM_PLACEHOLDER, own)
    ]
    names = [[name] for name in UNAVAILABLE]
    none: list[list[str]] = [[] for _ in UNAVAILABLE]
    by_default = typed(spark, known[0] + known[1], source)
    assert [reason(row) for row in by_default[: len(names)]] == [None] * len(names)
    assert [row["__unavailable"] for row in by_default] == names + none
    with_own = typed(spark, known[0] + known[1], source, placeholder=own)
    assert [reason(row) for row in with_own[len(names) :]] == [None] * len(names)
    # The text that everyone knows is a value as any other.
    assert [row["__unavailable"] for row in with_own] == none + names
    assert with_own[0]["c0"] == DEBEZIUM_PLACEHOLDER


def placed(form: str, placeholder: str) -> object:
    """A placeholder as a value of a column's type."""
    match form:
        case "text":
            return placeholder
        case "bytes":
            return base64.b64encode(placeholder.encode()).decode()
        case "texts":
            return [placeholder]
        case "numbers":
            return list(placeholder.encode())
        case "identities":
            # What UUID.nameUUIDFromBytes makes of the bytes.
            digest = md5(placeholder.encode(), usedforsecurity=False).digest()
            return [str(UUID(bytes=digest, version=3))]
        case "blobs":
            return [base64.b64encode(placeholder.encode()).decode()]
        case _:
            return {placeholder: placeholder}


def with_value(record: Record, **fields: Any) -> Record:
    return record[0], json.dumps(json.loads(record[1] or b"") | fields).encode()


def test_changes(spark: SparkSession) -> None:
    update = change("u", 1, 200, commit=150)
    wrapped = {"schema": {}, "payload": json.loads(update[1] or b"")}
    records = [
        update,
        change("r", 1, 200),
        (
            b'{"order_id": 5}',
            json.dumps(
                json.loads(change("d", 5, 9, first=True)[1] or b"") | {"before": None}
            ).encode(),
        ),
        (update[0], json.dumps(wrapped).encode()),
        with_value(update, op="m"),
        with_value(update, op="t"),
        with_value(update, op="x"),
        with_value(update, op=None),
        event(order_id=1),
        with_value(update, source={}),
        (b"{}", with_value(update, after=None)[1]),
        change("u", 1, 200, status="__debezium_unavailable_value"),
        change("u", 1, 200, amount="NaN"),
        (update[0], None),
    ]
    rows = typed(spark, records, CHANGES)
    assert [reason(row) for row in rows] == [
        None,
        None,
        None,
        None,
        None,
        None,
        ("UNKNOWN_OPERATION", "x"),
        ("NOT_A_CHANGE", None),
        ("NOT_A_CHANGE", None),
        ("SEQUENCE_MISSING", None),
        ("KEY_MISSING", "order_id"),
        None,
        ("TYPE_MISMATCH", "amount"),
        None,
    ]
    assert [row["order_id"] for row in rows[:4]] == [1, 1, 5, 1]
    assert [row["__unavailable"] for row in rows[11:13]] == [["status"], []]
    assert rows[0]["__committed_at"] == datetime.fromtimestamp(200)  # noqa: DTZ006
    assert rows[0]["__sequence"] == f"{150:020}.{200:020}.2.{0:010}"
    assert rows[1]["__sequence"] == f"{200:020}.{200:020}.0.{0:010}"
    assert rows[2]["__sequence"] == f"{9:020}.{9:020}.1.{0:010}"
    assert rows[3]["__sequence"] == rows[0]["__sequence"]


def test_numbers_of_a_change_are_exact_and_are_numbers_to_the_drift_check(
    spark: SparkSession,
) -> None:
    """A variant rounds them, so they are read again; also inside a converter's envelope."""
    source = CHANGES.model_copy(
        update={"columns": columns(order_id="bigint", amount="decimal(38,2)", status="string")}
    )
    texts = ["1.5e2", "123456789012345678901234567890.1e0", "7"]
    found = []
    for text in texts:
        key, value = change("u", 1, 200, commit=150, amount=0, status="[1e5]")
        plain = (value or b"").replace(b'"amount": 0', b'"amount": ' + text.encode())
        assert text.encode() in plain
        wrapped = b'{"schema": {}, "payload": ' + plain + b"}"
        found += typed(spark, [(key, plain), (key, wrapped)], source)
    assert [reason(row) for row in found] == [None] * len(found)
    assert [row["amount"] for row in found] == [Decimal(text) for text in texts for _ in range(2)]
    assert {row["status"] for row in found} == {"[1e5]"}
    kinds = [read_shape(row[SHAPE]).fields["amount"] for row in found]
    assert kinds == [Kind.NUMBER] * len(found)
    assert LAST not in read_shape(found[0][SHAPE]).fields


def test_only_updates_are_searched_for_values_that_were_not_sent(spark: SparkSession) -> None:
    sent = [change(one, 1, 200, status=DEBEZIUM_PLACEHOLDER) for one in ("u", "c")]
    assert [read_shape(row[SHAPE]).exact for row in typed(spark, sent, CHANGES)] == [False, True]


def test_numbers_that_are_none_come_in_the_connectors_words(spark: SparkSession) -> None:
    words = ["NAN", "POSITIVE_INFINITY", "NEGATIVE_INFINITY", "1.5"]
    records = [change("u", 1, 200, status=word, amount="1") for word in words]
    for kind, expected in (
        ("double", ["nan", "inf", "-inf", "1.5"]),
        ("string", words),
    ):
        declared = tuple(
            Column(name=one.name, type=kind if one.name == "status" else one.type)
            for one in CHANGES.columns
        )
        rows = typed(spark, records, CHANGES.model_copy(update={"columns": declared}))
        assert [reason(row) for row in rows] == [None] * 4
        assert [str(row["status"]) for row in rows] == expected


@pytest.mark.parametrize(("kind", "largest"), [("float", 38), ("double", 308)])
def test_a_number_that_is_too_large_is_not_infinite(
    spark: SparkSession, kind: str, largest: int
) -> None:
    """A NUMERIC of the database may be, whatever it is declared as here."""
    source = CHANGES.model_copy(update={"columns": columns(order_id="bigint", status=kind)})
    texts = [f"1e{largest}", f"1e{largest + 1}", f"-1e{largest + 1}", "POSITIVE_INFINITY"]
    rows = typed(spark, [change("u", 1, 200, status=one) for one in texts], source)
    refused = ("TYPE_MISMATCH", "status")
    assert [reason(row) for row in rows] == [None, refused, refused, None]
    assert rows[3]["status"] == float("inf")


def test_a_required_column_is_not_asked_of_a_deletion(spark: SparkSession) -> None:
    required = tuple(Column(name=c.name, type=c.type, required=True) for c in CHANGES.columns)
    source = CHANGES.model_copy(update={"columns": required})
    rows = typed(
        spark, [change("d", 1, 5), with_value(change("u", 1, 6), after={"order_id": 1})], source
    )
    assert [reason(row) for row in rows] == [None, ("MISSING_REQUIRED", "status")]


def test_a_row_of_an_incremental_snapshot_stands_right_after_the_last_commit(
    spark: SparkSession,
) -> None:
    reached = {"lsn": None, "sequence": json.dumps(["130", "134"])}
    read_again = with_value(change("r", 1, 0), source=reached)
    unknown = with_value(change("r", 1, 0), source={"lsn": None, "sequence": "[null,null]"})
    # Written before the snapshot and committed after it, and committed before it.
    later, earlier = change("u", 1, 120, commit=130), change("u", 1, 129, commit=110)
    rows = typed(spark, [read_again, unknown, later, earlier], CHANGES)
    assert [reason(row) for row in rows] == [None, ("SEQUENCE_MISSING", None), None, None]
    places = [rows[at]["__sequence"] for at in (3, 0, 2)]
    assert places == sorted(places)


def test_a_truncation_has_a_place_and_needs_no_columns(spark: SparkSession) -> None:
    required = tuple(Column(name=c.name, type=c.type, required=True) for c in CHANGES.columns)
    source = CHANGES.model_copy(update={"columns": required})
    truncated = change("t", 0, 7, commit=5)
    rows = typed(spark, [truncated, with_value(truncated, source={})], source)
    assert [reason(row) for row in rows] == [None, ("SEQUENCE_MISSING", None)]
    assert rows[0]["__sequence"] == f"{5:020}.{7:020}.2.{0:010}"


def test_a_declared_sequence_sorts_as_its_values(spark: SparkSession) -> None:
    """Also below zero, and by times without a zone."""
    whole = [-(2**63), -100, -11, -10, -9, -1, 0, 1, 9, 10, 2**63 - 1]
    times = ["0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-02-29 12:34:56.5"]
    for kind, values in (
        ("bigint", whole),
        ("timestamp", times),
        ("timestamp_ntz", times),
        ("date", ["0001-01-01", "1969-12-31", "2024-02-29"]),
        ("decimal(20,0)", whole),
    ):
        frame = spark.createDataFrame([(str(one),) for one in values], "text string")
        declared = declared_sequence(sf.col("text").cast(kind), kind, commit=sf.lit("7"))
        found = [row[0] for row in frame.select(declared).collect()]
        assert found == sorted(set(found)), kind
        assert {len(one) for one in found} == {22}


def test_a_sequence_column_is_found_in_any_case(spark: SparkSession) -> None:
    """Otherwise the time would be cut to seconds, and the commit order would decide."""
    times = columns(order_id="bigint", status="timestamp")
    source = CHANGES.model_copy(update={"columns": times})
    entry = ORDERS.model_copy(
        update={
            "projection": "SELECT o.order_id, o.status FROM source AS o",
            "columns": times,
            "sequence_by": "Status",
        }
    )
    first = change("u", 1, 300, status="2024-02-29T12:34:56.5Z")
    second = change("u", 1, 200, status="2024-02-29T12:34:56.6Z")
    rows = row_steps(source, entry, max_bytes=1000)(bronze(spark, [first, second]))
    found = [row[0] for row in rows.orderBy("__offset").select("__sequence").collect()]
    assert found == sorted(found)


def test_a_row_change_without_its_row_is_no_change(spark: SparkSession) -> None:
    """The key alone would make a row of NULLs of it."""
    images: list[Any] = [None, "text", [1]]
    records = [with_value(change(one, 1, 200), after=image) for one in "cur" for image in images]
    found = typed(spark, records, CHANGES)
    assert [reason(row) for row in found] == [("NOT_A_CHANGE", "after")] * 9
    assert [row[SHAPE] for row in found] == [None] * 9


def test_a_source_table_that_changes_its_shape(spark: SparkSession) -> None:
    """Added is ignored, widened fits while the values do, all else says what does not fit."""
    source = CHANGES.model_copy(
        update={
            "columns": (
                Column(name="order_id", type="bigint"),
                Column(name="status", type="string", required=True),
                Column(name="number", type="int"),
                Column(name="amount", type="decimal(12,2)"),
            )
        }
    )
    whole = {"order_id": 1, "status": "paid", "number": 1, "amount": "1.50"}
    images: list[dict[str, Any]] = [
        {**whole, "added": {"any": ["shape"]}},
        {**whole, "number": 2147483647, "amount": "1.5"},
        {**whole, "amount": 7},
        {**whole, "number": 2147483648},
        {**whole, "amount": "1.505"},
        {**whole, "number": "one"},
        {**whole, "amount": {"scale": 2, "value": "AJY="}},
        {"order_id": 1, "state": "paid", "number": 1, "amount": "1.50"},
        {"order_id": 1, "status": "paid"},
    ]
    placed = change("u", 1, 200)
    rows = typed(spark, [with_value(placed, after=image) for image in images], source)
    assert [reason(row) for row in rows] == [
        None,
        None,
        None,
        ("TYPE_MISMATCH", "number"),
        ("TYPE_MISMATCH", "amount"),
        ("TYPE_MISMATCH", "number"),
        ("TYPE_MISMATCH", "amount"),
        ("MISSING_REQUIRED", "status"),
        None,
    ]
    assert "added" not in rows[0]
    assert (rows[1]["number"], rows[2]["amount"]) == (2147483647, Decimal("7.00"))
    assert (rows[8]["number"], rows[8]["amount"]) == (None, None)


def test_a_filter_by_key_stays_above_the_row(spark: SparkSession) -> None:
    """Below it, Spark writes out the row for each column: with many keys that takes minutes."""
    frame = typed_records(bronze(spark, []), CHANGES, max_bytes=1000)
    filtered = frame.where(sf.col("order_id").isNotNull())
    spark.conf.set("spark.sql.debug.maxToStringFields", "10000")
    try:
        plan = filtered._jdf.queryExecution().optimizedPlan().toString().splitlines()
    finally:
        spark.conf.unset("spark.sql.debug.maxToStringFields")
    [condition] = [number for number, line in enumerate(plan) if "Filter " in line]
    [row] = [number for number, line in enumerate(plan) if f" AS {IMAGE}#" in line]
    assert condition < row

"""What PostgreSQL cannot hold as it is: long names, and the sign of a zero within a ``jsonb``."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from spark_jobs.sinks.postgres_tables import NAME_BYTES, index_name
from spark_jobs.sinks.rows import RowCodec

LONG = "a" * 50
NESTED = {
    "list": (pa.list_(pa.float64()), [-0.0, 1.5, None]),
    "map": (pa.map_(pa.string(), pa.float32()), [("k", -0.0)]),
    "struct": (pa.struct([("f", pa.list_(pa.float64()))]), {"f": [-0.0, float("nan")]}),
}


def test_tables_that_share_fifty_characters_have_their_own_indexes() -> None:
    tables = [LONG, *(f"{LONG}{end}" for end in ("_a", "_b", "_of_one", "_of_another"))]
    names = {index_name(table) for table in tables}
    assert len(names) == len(tables)
    assert all(len(name) <= NAME_BYTES for name in names)
    # As earlier releases named them.
    assert index_name(LONG) == f"{LONG}_tidemark"


@pytest.mark.parametrize("name", NESTED)
def test_a_zero_has_no_sign_within_a_jsonb(name: str) -> None:
    kind, value = NESTED[name]
    schema = pa.schema([("id", pa.int64()), (name, kind), ("double", pa.float64())])
    row = {"id": 1, name: value, "double": -0.0}
    table = pa.Table.from_pylist([row], schema)
    codec = RowCodec(schema, ("id",), unsigned=True)

    [(_, sent)] = codec.rows(table.to_batches()[0])
    # What the server answers: numbers of a jsonb have no negative zero.
    held = json.loads(json.dumps(json.loads(sent)[name]).replace("-0.0", "0.0"))
    assert codec.row({**row, name: held}) == sent
    assert json.loads(sent)["double"].hex() == (-0.0).hex()
    [(_, exact)] = RowCodec(schema, ("id",)).rows(table.to_batches()[0])
    assert "-0.0" in json.dumps(json.loads(exact)[name])

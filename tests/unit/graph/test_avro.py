"""The bytes that an Avro record begins with, for each schema of its source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastavro.schema import parse_schema, to_parsing_canonical_form

from spark_jobs.graph.compile import compile_project
from tests.golden.declaration_cases import PAYMENT, write_project

OLDER = PAYMENT.replace("},\n", '},\n  {"name": "note", "type": "string"},\n', 1)
EMPTY = 0xC15D213AA4D7A795


def rabin(text: str) -> int:
    """The specification's fingerprint, one bit after the other."""
    found = EMPTY
    for byte in text.encode():
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (EMPTY if found & 1 else 0)
    return found


def compiled(project: Path, schemas: str) -> list[tuple[str, object]]:
    files = {
        "sources/payments.yml": f"format: avro\ntopic: payments\nschemas: {schemas}\n"
        "event_id: id\ncolumns: {id: STRING, at: TIMESTAMP}\n",
        "schemas/payment.avsc": PAYMENT,
        "schemas/older.avsc": OLDER,
    }
    write_project(project, files)
    source = compile_project(project).sources["payments"]
    return [(one.prefix, json.loads(one.text)) for one in source.schemas]


def test_the_specifications_own_fingerprint_is_met() -> None:
    assert rabin('"int"') == 0x7275D51A3F395C8F


def test_a_list_of_files_stands_for_single_object_encoding(tmp_path: Path) -> None:
    found = compiled(tmp_path, "[schemas/older.avsc, schemas/payment.avsc]")
    for (prefix, _), text in zip(found, (OLDER, PAYMENT), strict=True):
        marker, fingerprint = prefix[:4], bytes.fromhex(prefix[4:])
        assert marker == "C301"
        canonical = to_parsing_canonical_form(json.loads(text))
        assert int.from_bytes(fingerprint, "little") == rabin(canonical)
    assert found[0][0] != found[1][0]


@pytest.mark.parametrize(("number", "prefix"), [("7", "0000000007"), ("66051", "0000010203")])
def test_a_number_stands_for_a_registrys_framing(tmp_path: Path, number: str, prefix: str) -> None:
    ((found, schema),) = compiled(tmp_path, f"{{{number}: schemas/payment.avsc}}")
    assert found == prefix
    assert schema == parse_schema(json.loads(PAYMENT), _write_hint=False)

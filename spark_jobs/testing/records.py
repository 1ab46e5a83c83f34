"""Encodes the records of a case as the bytes that Kafka would contain.

Only the bytes are made here; the code of the stream interprets them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from spark_jobs.definitions.silver_case import RecordFile
from spark_jobs.definitions.vocabulary import Operation, SourceFormat
from spark_jobs.errors import Location
from spark_jobs.graph.manifest import SourceEntry
from spark_jobs.testing.errors import CaseRecordError

SHOWN_CHARACTERS = 40
_CHANGE_KEYS = ("before", "after", "position", "commit", "at")


@dataclass(frozen=True)
class Sent:
    """Key and value of a record, and the position of a change in the source's order."""

    key: bytes | None
    value: bytes | None
    position: int | None = None


def sent(
    record: RecordFile, source: SourceEntry, *, position: int, clock: datetime, location: Location
) -> Sent:
    """The bytes of a record.

    Args:
        record: from the file.
        source: the declaration of its topic.
        position: of a change without one.
        clock: commit time of a change without one.
        location: of the record in its file.

    Raises:
        CaseRecordError: the record cannot be encoded.
    """
    given = record.model_fields_set
    forms = [form for form in ("op", "value", "hex") if form in given]
    if len(forms) != 1:
        problem = "it has " + (" and ".join(forms) if forms else "neither op, value nor hex")
        hint = "Write one of them: op for a change of a database, value or hex for any record."
        raise CaseRecordError(problem, hint, location=location)
    if record.op is not None:
        return _change(record, record.op, source, position=position, clock=clock, location=location)
    if others := [name for name in _CHANGE_KEYS if name in given]:
        problem = f"it has {', '.join(others)} without op"
        raise CaseRecordError(problem, "Add op, or remove them.", location=location)
    return Sent(_key(record, location), _value(record, source, location))


def words(record: RecordFile, made: Sent) -> str:
    """A few words that identify a record among its neighbours."""
    if record.op is not None:
        key = made.key.decode() if made.key is not None else "no key"
        return f"{record.op} {key} at {made.position}"
    text = "NULL" if made.value is None else made.value.decode("utf-8", "backslashreplace")
    shown = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return shown if len(shown) <= SHOWN_CHARACTERS else f"{shown[: SHOWN_CHARACTERS - 1]}…"


def _change(
    record: RecordFile,
    op: Operation,
    source: SourceEntry,
    *,
    position: int,
    clock: datetime,
    location: Location,
) -> Sent:
    if source.format is not SourceFormat.DEBEZIUM:
        problem = f"it has an op, but source {source.name!r} has the format {source.format}"
        hint = "Write the record as 'value: {...}'."
        raise CaseRecordError(problem, hint, location=location)
    image = _image(record, op, location)
    place = position if record.position is None else record.position
    moment = clock if record.at is None else record.at
    envelope = {
        "op": op,
        "before": record.before,
        "after": _whole(record.after, source),
        "source": {
            "lsn": place,
            "sequence": _json([_commit(record, op, place), str(place)]),
            "ts_us": round(moment.timestamp() * 1_000_000),
        },
        "transaction": None,
    }
    return Sent(
        _change_key(record, source, image=image, location=location), _bytes(envelope), place
    )


def _commit(record: RecordFile, op: Operation, place: int) -> str | None:
    """The end of the transaction before the one of a change; None for a row of a snapshot.

    A change without one would belong to a transaction that may have been open at a snapshot, and
    could sort after rows of higher positions. So it is just before the change, as after any other.
    """
    if record.commit is not None:
        return str(record.commit)
    return None if op is Operation.SNAPSHOT else str(max(place - 1, 0))


def _whole(image: Mapping[str, Any] | None, source: SourceEntry) -> dict[str, Any] | None:
    """An image with all declared columns, as Debezium always sends them; NULL unless given.

    A column that is missing in a later row would count as dropped.
    """
    if image is None:
        return None
    return {**dict.fromkeys(column.name for column in source.columns), **image}


def _image(record: RecordFile, op: Operation, location: Location) -> Mapping[str, Any] | None:
    """The image with the key of a change; None for a truncation.

    Raises:
        CaseRecordError: the image is missing, or one that this operation never has is given.
    """
    refused: tuple[str, ...]
    match op:
        case Operation.TRUNCATE:
            needed, refused, image = None, ("before", "after"), None
        case Operation.DELETE:
            needed, refused, image = "before", ("after",), record.before
        case Operation.CREATE | Operation.SNAPSHOT:
            needed, refused, image = "after", ("before",), record.after
        case Operation.UPDATE:
            needed, refused, image = "after", (), record.after
    if needed is not None and image is None:
        problem = f"a change with op: {op} has no {needed!r}"
        hint = f"Add '{needed}: {{...}}', at least with the key."
        raise CaseRecordError(problem, hint, location=location)
    if found := [name for name in refused if getattr(record, name) is not None]:
        problem = f"a change with op: {op} never has {found[0]!r}"
        raise CaseRecordError(problem, f"Remove {found[0]!r}.", location=location)
    return image


def _change_key(
    record: RecordFile,
    source: SourceEntry,
    *,
    image: Mapping[str, Any] | None,
    location: Location,
) -> bytes | None:
    if "key" in record.model_fields_set or image is None:
        return _key(record, location)
    missing = [key for key in source.keys if key not in image]
    if missing:
        problem = f"its image lacks the key column {missing[0]!r}"
        hint = f"Add {missing[0]!r}, or write the Kafka key: 'key: {{...}}', or 'key: null'."
        raise CaseRecordError(problem, hint, location=location)
    return _bytes({key: image[key] for key in source.keys})


def _key(record: RecordFile, location: Location) -> bytes | None:
    return _payload(record.key, "key", location)


def _value(record: RecordFile, source: SourceEntry, location: Location) -> bytes | None:
    if record.hex is not None:
        try:
            return bytes.fromhex(record.hex)
        except ValueError as error:
            hint = "Write two digits 0-9, a-f for each byte, in quotes: hex: '7b ff 7d'."
            raise CaseRecordError(
                f"its hex is not valid: {error}", hint, location=location
            ) from None
    if source.format is SourceFormat.AVRO and isinstance(record.value, dict):
        return _avro(record.value, source, location)
    return _payload(record.value, "value", location)


def _payload(value: object, name: str, location: Location) -> bytes | None:
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case dict():
            return _bytes(value)
        case _:
            problem = f"its {name} {value!r} is neither an object nor text"
            hint = f"Write {name}: {{...}} for JSON, {name}: 'text' for any text, or {name}: null."
            raise CaseRecordError(problem, hint, location=location)


def _avro(value: dict[str, Any], source: SourceEntry, location: Location) -> bytes:
    """The record in Avro, by the last of the source's schemas and with its prefix."""
    from fastavro import parse_schema, schemaless_writer  # noqa: PLC0415

    declared = source.schemas[-1]
    schema = json.loads(declared.text)
    body = io.BytesIO()
    try:
        fields = {
            one["name"]: _exact(value[one["name"]], one["type"])
            for one in schema["fields"]
            if one["name"] in value
        }
        schemaless_writer(body, parse_schema(schema, _write_hint=False), value | fields)
    except (ArithmeticError, ValueError, TypeError, KeyError, AttributeError) as error:
        problem = f"its value does not fit the source's last schema: {error}"
        hint = "Write all fields of the schema, or the record's bytes as hex."
        raise CaseRecordError(problem, hint, location=location) from error
    return bytes.fromhex(declared.prefix) + body.getvalue()


def _exact(value: Any, kind: Any) -> Any:
    """A number or its text as the decimal for a field of an Avro schema."""
    kinds = kind if isinstance(kind, list) else [kind]
    decimal = any(isinstance(one, dict) and one.get("logicalType") == "decimal" for one in kinds)
    return Decimal(str(value)) if decimal and isinstance(value, str | int | float) else value


def _bytes(value: object) -> bytes:
    return _json(value).encode()


def _json(value: object) -> str:
    return json.dumps(value, default=_scalar, ensure_ascii=False)


def _scalar(value: object) -> str:
    """A date or time of YAML as producers write it; times are in UTC."""
    match value:
        case datetime():
            moment = value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)
            return moment.replace(tzinfo=None).isoformat() + "Z"
        case date():
            return value.isoformat()
        case _:
            return str(value)

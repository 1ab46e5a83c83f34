"""Models of the files; unknown keys and values of another type are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from spark_jobs.definitions.column_types import TypeTextError, canonical_type
from spark_jobs.definitions.durations import DURATION_PATTERN, parse_duration
from spark_jobs.definitions.schedules import cron_problem, zone_known
from spark_jobs.definitions.vocabulary import (
    Consistency,
    Contract,
    KafkaFormat,
    OnDrift,
    OnExpiry,
    OnFailure,
    RedisFormat,
    RefreshPolicy,
    Severity,
    SourceFormat,
    Strategy,
)

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _duration(value: Any) -> timedelta:
    parsed = parse_duration(value) if isinstance(value, str) else None
    if parsed is None:
        raise PydanticCustomError("duration", "{text}", {"text": str(value)})
    return parsed


def _column_type(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    try:
        return canonical_type(text)
    except TypeTextError as error:
        problem, hint = error.args
        raise PydanticCustomError(
            "column_type", "{problem}", {"text": text, "problem": problem, "hint": hint}
        ) from error


def _cron(value: Any) -> str:
    text = " ".join(str(value).split())
    if problem := cron_problem(text):
        raise PydanticCustomError("cron", "{problem}", {"text": text, "problem": problem})
    return text


def _zone(value: Any) -> str:
    if not isinstance(value, str) or not zone_known(value):
        raise PydanticCustomError("time_zone", "{text}", {"text": str(value)})
    return value


def _long_form(value: Any) -> Any:
    """``name: TYPE`` is short for ``name: {type: TYPE}``."""
    return value if isinstance(value, dict) else {"type": value}


def _described(value: Any) -> Any:
    """``name: text`` is short for ``name: {description: text}``."""
    return value if isinstance(value, dict) else {"description": value}


def _day(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise PydanticCustomError("day", "{text}", {"text": str(value)})


def _one_or_more(value: Any) -> Any:
    """A single name means a list of one."""
    return [value] if isinstance(value, str) else value


def _schemas(value: Any) -> Any:
    """Files, or a file for each id of a schema registry."""
    files = value.values() if isinstance(value, dict) else _one_or_more(value)
    if not isinstance(files, Iterable) or not all(isinstance(one, str) and one for one in files):
        raise PydanticCustomError("schemas", "{problem}", {"problem": "it names no files"})
    return value if isinstance(value, dict) else tuple(files)


def _instant(value: Any) -> Any:
    """A time of YAML has no zone; all times of a case are in UTC."""
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and not value.tzinfo else value


Text = Annotated[str, Field(strict=True, min_length=1)]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "examples": ["15 minutes"]}),
]
Cron = Annotated[
    str,
    BeforeValidator(_cron),
    WithJsonSchema({"type": "string", "examples": ["30 6 * * 1-5"]}),
]
Zone = Annotated[
    str,
    BeforeValidator(_zone),
    WithJsonSchema({"type": "string", "examples": ["Europe/Berlin"]}),
]
Day = Annotated[
    date,
    BeforeValidator(_day),
    WithJsonSchema({"type": "string", "format": "date", "examples": ["2027-01-31"]}),
]
Instant = Annotated[datetime, Field(strict=True), BeforeValidator(_instant)]
# A single name means a list of one.
Names = Annotated[
    tuple[Text, ...], BeforeValidator(_one_or_more, json_schema_input_type=Text | tuple[Text, ...])
]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ColumnFile(_File):
    """A column of a source."""

    type: Annotated[str, BeforeValidator(_column_type)]
    description: Text | None = None
    required: Annotated[bool, Field(strict=True)] = False
    pii: Annotated[bool, Field(strict=True)] = False
    values: Names = ()


class SourceFile(_File):
    """``sources/<name>.yml``."""

    description: Text | None = None
    owner: Text | None = None
    tags: Names = ()
    format: SourceFormat
    topic: Text | None = None
    location: Text | None = None
    path: Text | None = None
    most_rejected: Annotated[float, Field(ge=0, le=1)] | None = None
    columns: dict[
        str,
        Annotated[
            ColumnFile, BeforeValidator(_long_form, json_schema_input_type=Text | ColumnFile)
        ],
    ] = Field(default_factory=dict)
    schemas: Annotated[
        tuple[Text, ...] | dict[Text, Text],
        BeforeValidator(
            _schemas, json_schema_input_type=Text | tuple[Text, ...] | dict[Text, Text]
        ),
    ] = ()
    event_id: Text | None = None
    event_time: Text | None = None
    watermark: Duration | None = None
    keys: Names = ()
    table: Text | None = None
    on_drift: OnDrift | None = None


class _SinkFile(_File):
    name: Text | None = None
    keys: Names = ()


class KafkaSinkFile(_SinkFile):
    """A topic that receives a table's changes."""

    topic: Text
    format: KafkaFormat = KafkaFormat.UPSERT


class PostgresSinkFile(_SinkFile):
    """A table in PostgreSQL with a table's rows."""

    table: Text


class RedisSinkFile(_SinkFile):
    """Keys with a prefix and a table's rows."""

    prefix: Text
    format: RedisFormat = RedisFormat.HASH


class CassandraSinkFile(_SinkFile):
    """A table in Cassandra with a table's rows."""

    table: Text


class SinkFile(_File):
    """One entry of ``sinks``: a system, and its options."""

    kafka: KafkaSinkFile | None = None
    postgres: PostgresSinkFile | None = None
    redis: RedisSinkFile | None = None
    cassandra: CassandraSinkFile | None = None


class SilverHeader(_File):
    """The header of ``sql/silver/<name>.sql``."""

    description: Text | None = None
    owner: Text | None = None
    tags: Names = ()
    keys: Names = ()
    sequence_by: Text | None = None
    apply_as_deletes: Text | None = None
    stored_as_scd_type: Annotated[int, Field(strict=True, ge=1, le=2)] = 1
    ttl: Duration | None = None
    expire_by: Text | None = None
    on_expiry: OnExpiry | None = None
    on_failure: OnFailure | None = None
    partition_by: Names = ()
    cluster_by: Names = ()
    columns: dict[Text, Text] = Field(default_factory=dict)
    pii: Names = ()
    not_pii: Names = ()
    sinks: tuple[SinkFile, ...] = ()


class OutputColumnFile(_File):
    """A column of a gold view."""

    description: Text | None = None
    deprecated: Day | None = None
    use: Text | None = None


class GoldHeader(_File):
    """The header of ``sql/gold/<name>.sql``."""

    description: Text
    owner: Text
    tags: Names = ()
    refresh: RefreshPolicy
    every: Duration | None = None
    schedule: Cron | None = None
    time_zone: Zone | None = None
    freshness: Duration | None = None
    verify: Duration | None = None
    consistency: Consistency | None = None
    ttl: Duration | None = None
    grain: Names = ()
    strategy: Strategy = Strategy.AUTO
    contract: Contract | None = None
    contract_version: Annotated[int, Field(strict=True, ge=1)] | None = None
    partition_by: Names = ()
    cluster_by: Names = ()
    columns: dict[
        Text,
        Annotated[
            OutputColumnFile,
            BeforeValidator(_described, json_schema_input_type=Text | OutputColumnFile),
        ],
    ] = Field(default_factory=dict)
    pii: Names = ()
    not_pii: Names = ()
    sinks: tuple[SinkFile, ...] = ()


class ExpectationFile(_File):
    """One expectation of a suite, in Great Expectations' format."""

    type: Text
    kwargs: dict[str, Any] = Field(default_factory=dict)
    severity: Severity = Severity.CRITICAL
    meta: dict[str, Any] | None = None
    id: Text | None = None
    notes: str | list[str] | None = None
    description: str | None = None
    rendered_content: Any = None
    success_on_last_run: Any = None
    windows: Any = None


class StepFile(_File):
    """A step of a case: changes of the inputs or the clock, and the expected view."""

    step: Text
    clock: Instant | None = None
    delete: dict[Text, Text] = Field(default_factory=dict)
    update: dict[Text, Text] = Field(default_factory=dict)
    insert: dict[Text, Text] = Field(default_factory=dict)
    then: Text


class CaseFile(_File):
    """``tests/cases/gold/<view>.yml``: inputs, the expected view, and steps."""

    description: Text
    clock: Instant | None = None
    given: dict[Text, Text]
    then: Text
    when: tuple[StepFile, ...] = ()


class SuiteFile(_File):
    """``expectations/<layer>/<name>.json``, in Great Expectations' format."""

    name: Text
    expectations: tuple[ExpectationFile, ...]
    meta: dict[str, Any] | None = None
    notes: str | list[str] | None = None
    id: Text | None = None
    suite_parameters: dict[str, Any] | None = None

"""Column types with the same meaning in SQLite and PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import TypeDecorator

JsonObject = dict[str, Any]


class UtcDateTime(TypeDecorator[datetime]):
    """A timestamp; SQLite has no time zones, so there it is stored in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone")
        instant = value.astimezone(UTC)
        return instant.replace(tzinfo=None) if dialect.name == "sqlite" else instant

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def json_column_type() -> JSON:
    """A JSON object; Python's None is SQL NULL, not JSON null."""
    return JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def utc_now() -> datetime:
    """The current time by this machine's clock."""
    return datetime.now(UTC)

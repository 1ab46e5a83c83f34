"""Validates plain data with a model; each mismatch becomes a condition with its place."""

from __future__ import annotations

from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from spark_jobs.definitions.errors import (
    CronError,
    DurationError,
    MissingKeyError,
    TimeZoneError,
    UnexpectedValueError,
    UnknownColumnTypeError,
    UnknownKeyError,
)
from spark_jobs.definitions.marked import Marked
from spark_jobs.errors import LakehouseError, did_you_mean

Model = TypeVar("Model", bound=BaseModel)
# How pydantic calls the limits of a number.
_LIMITS = {"ge": "at least", "le": "at most", "gt": "more than", "lt": "less than"}


def checked(
    marked: Marked, model: type[Model], subject: str
) -> tuple[Model | None, list[LakehouseError]]:
    """Validate a document; returns the model (None if there are problems) and all problems.

    Args:
        marked: the document.
        model: its model.
        subject: its name in messages, for example ``gold view "orders"``.
    """
    problems: list[LakehouseError] = list(marked.problems)
    data = {} if marked.data is None else marked.data
    if not isinstance(data, dict):
        problems.append(
            UnexpectedValueError(
                subject,
                "",
                f"it is {_kind(data)}",
                "Write keys and values, one 'key: value' a line.",
                location=marked.places.of(),
            )
        )
        return None, problems
    try:
        filled = model.model_validate(data)
    except ValidationError as error:
        problems.extend(
            _problem(one, marked, model, subject) for one in error.errors(include_url=False)
        )
        return None, problems
    return (None if problems else filled), problems


def _problem(
    error: ErrorDetails, marked: Marked, model: type[BaseModel], subject: str
) -> LakehouseError:
    path = error["loc"]
    key = str(path[-1])
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            known = _known_keys(path, model)
            return UnknownKeyError(subject, key, known, location=marked.places.of(*path))
        case "missing" if path[0] == "columns":
            column = str(path[1])
            return MissingKeyError(
                f'{subject}: column "{column}"', key, location=marked.places.of(*path)
            )
        case "missing":
            within = f"{subject}: {path[2]} sink" if path[0] == "sinks" else subject
            return MissingKeyError(within, key, location=marked.places.value_of(*path[:-1]))
        case "duration":
            place = marked.places.value_of(*path)
            return DurationError(subject, key, str(context["text"]), location=place)
        case "cron":
            place = marked.places.value_of(*path)
            text, why = str(context["text"]), str(context["problem"])
            return CronError(subject, text, why, location=place)
        case "time_zone":
            place = marked.places.value_of(*path)
            return TimeZoneError(subject, str(context["text"]), location=place)
        case "column_type":
            return UnknownColumnTypeError(
                subject,
                str(path[1]),
                str(context["text"]),
                str(context["problem"]),
                str(context["hint"]),
                location=marked.places.value_of(*path),
            )
        case _:
            return _unexpected(error, marked, subject)


def _unexpected(error: ErrorDetails, marked: Marked, subject: str) -> LakehouseError:
    path = error["loc"]
    named = [part for part in path if isinstance(part, str)]
    value = error["input"]
    problem = f"{value!r} is {_kind(value)}"
    if error["type"] == "enum":
        words = str(error.get("ctx", {}).get("expected", "")).replace("'", "")
        problem = f"{value!r} is not one of {words}"
        known = words.replace(" or ", ", ").split(", ")
        hint = did_you_mean(str(value), known) or f"Write {words}."
    elif error["type"] == "string_type":
        hint = "Write text; put it in quotes where YAML reads it as something else."
    elif error["type"] == "tuple_type":
        hint = "Write a list: one entry a line, each after '- '."
    elif error["type"] == "schemas":
        problem = str(error["ctx"]["problem"])
        hint = "Write a list of Avro schema files, or 'ID: FILE' for each id of your registry."
    elif error["type"] == "day":
        problem = f"{str(value)!r} is not a date"
        hint = "Write the first day on which the column may be removed, as YYYY-MM-DD."
    elif error["type"] in {"model_type", "dict_type"}:
        hint = "Write keys and values, one 'key: value' a line."
    elif error["type"].startswith("datetime"):
        hint = "Write a date and a time without quotes, as in 2026-03-01 12:00:00; it is in UTC."
    elif error["type"] == "string_too_short":
        problem, hint = "it is empty", "Write something there, or remove the key."
    elif error["type"].startswith(("greater", "less")):
        limits = [f"{_LIMITS[name]} {limit:g}" for name, limit in error["ctx"].items()]
        problem, hint = f"{value!r} is out of range", f"Write a number of {limits[0]}."
    else:
        hint = error["msg"].replace("Input s", "S") + "."
    key = ".".join(named) or str(path[-1])
    return UnexpectedValueError(subject, key, problem, hint, location=marked.places.value_of(*path))


def _known_keys(path: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    """The keys of the model that contains the last step of the path."""
    inner = model
    for step in path[:-1]:
        field = inner.model_fields.get(str(step))
        inner = _model_in(field.annotation if field else None) or inner
    return list(inner.model_fields)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """The model of a field, or of its items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(one) for one in get_args(annotation))
    return next((one for one in found if one is not None), None)


def _kind(value: object) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
        case _:
            return f"a {type(value).__name__}"

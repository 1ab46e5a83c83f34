"""Names of settings: those of older releases, and words about names that are wrong."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from spark_jobs.errors import did_you_mean

log = logging.getLogger(__name__)


def with_old_name(values: Any, *, old: str, new: str, section: str = "") -> Any:
    """Move values from a setting's old name to its new one, with a warning.

    A key that is set under both names keeps the value of the new one.

    Args:
        values: of all sources, by key.
        old: the name of older releases.
        new: the current name.
        section: prefix of both in the warning, such as ``airflow.``.
    """
    if not isinstance(values, dict) or values.get(old) is None:
        return values
    log.warning(
        "The setting %s%s is called %s%s now; the next release no longer reads the old name.",
        *(section, old, section, new),
    )
    rest = {key: value for key, value in values.items() if key != old}
    before, after = values[old], rest.get(new)
    if isinstance(before, dict) and isinstance(after, dict):
        return {**rest, new: {**before, **after}}
    return {**rest, new: before if after is None else after}


def problem_words(
    kind: str, message: str, *, place: Sequence[str | int], of: type[BaseModel]
) -> str:
    """What is wrong with a setting, in words of settings and not of pydantic.

    Args:
        kind: pydantic's type of the error.
        message: its message, where there is no better one.
        place: the keys.
        of: the model of all settings.
    """
    if place[0] == "variables" and len(place) > 1:
        return "Write a number, a text, true or false; a date in quotes"
    if kind == "model_type":
        return "it is a section: write its keys below it, indented, or remove it"
    if kind != "extra_forbidden":
        return message
    model: Any = of
    for key in place[:-1]:
        field = getattr(model, "model_fields", {}).get(str(key))
        model = None if field is None else field.annotation
    near = did_you_mean(str(place[-1]), sorted(getattr(model, "model_fields", {})))
    return f"there is no such setting. {near}" if near else "there is no such setting"

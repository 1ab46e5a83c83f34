"""Names of settings: those of older releases, and words about names that are wrong."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from typing import Any, get_origin

import yaml
from pydantic import BaseModel

from spark_jobs.errors import Location, SettingError, did_you_mean

log = logging.getLogger(__name__)
SECTION = "it is a section: write its keys below it, indented, or remove it"


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
        return SECTION
    if kind != "extra_forbidden":
        return message
    model: Any = of
    for key in place[:-1]:
        field = getattr(model, "model_fields", {}).get(str(key))
        model = None if field is None else field.annotation
    near = did_you_mean(str(place[-1]), sorted(getattr(model, "model_fields", {})))
    return f"there is no such setting. {near}" if near else "there is no such setting"


def misplaced_values(
    node: yaml.Node | None, file: str, *, of: type[BaseModel]
) -> Iterator[tuple[tuple[str | int, ...], Location]]:
    """The sections of a settings file that are no mappings: their keys, and where they are.

    Args:
        node: of the file, or of a section.
        file: its name.
        of: the model of its keys.
    """
    if not isinstance(node, yaml.MappingNode):
        return
    for name, value in node.value:
        field = of.model_fields.get(str(name.value))
        model: Any = None if field is None else field.annotation
        is_model = isinstance(model, type) and issubclass(model, BaseModel)
        if not is_model and get_origin(model) is not dict:
            continue
        if not isinstance(value, yaml.MappingNode):
            mark = name.start_mark
            yield (name.value,), Location(file, mark.line + 1, mark.column + 1)
        elif is_model:
            for key, place in misplaced_values(value, file, of=model):
                yield (name.value, *key), place


def unread_variable(error: Exception) -> SettingError:
    """A section whose environment variable is no JSON, from what pydantic's reader says."""
    named = re.search('field "(.+?)"', str(error))
    problem = "it is a section: an environment variable of this name must hold a JSON object"
    return SettingError(named[1] if named else "", problem)

"""Settings under the names of older releases."""

from __future__ import annotations

import logging
from typing import Any

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

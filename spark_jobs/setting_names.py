"""Settings under the names of older releases."""

from __future__ import annotations

import logging
from typing import Any

log = logging.getLogger(__name__)


def with_old_name(values: Any, *, old: str, new: str, section: str = "") -> Any:
    """Values under a setting's new name, which were set under its old one; with a warning.

    A key that is set under both names keeps the value of the new one.

    Args:
        values: what all sources say, by key.
        old: the name of older releases.
        new: the name now.
        section: where both are, for the warning: ``airflow.``.
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

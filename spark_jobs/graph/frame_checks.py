"""Checks the frames of windows, ROWS and RANGE."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from spark_jobs.graph.type_checks import sure_kind

_UNBOUNDED: Final = "UNBOUNDED"
_CURRENT: Final = "CURRENT ROW"
_PRECEDING: Final = "PRECEDING"
_FOLLOWING: Final = "FOLLOWING"
# RANGE with a distance needs an order of a type that supports addition.
_DISTANCES: Final = ("number", "date", "timestamp")

Problem = tuple[str, str]
_Bound = tuple[exp.Expr | str, str]
_USUAL: Final = ((_UNBOUNDED, _PRECEDING), (_CURRENT, ""))


def frame_problem(window: exp.Window, ordered: bool) -> Problem | None:  # noqa: FBT001 - of the call
    """What is wrong with a window's frame, and what to do; None: no definite mistake.

    Args:
        window: with its types, as ``check_types`` left them.
        ordered: whether the function numbers rows, or reads an earlier or later one.
    """
    spec = window.args.get("spec")
    if spec is None:
        return None
    start, end = _bound(spec, "start"), _bound(spec, "end")
    values = [one for one, _ in (start, end) if isinstance(one, exp.Expr)]
    if any(one.find(exp.Column, exp.Query) for one in values):
        return "has a frame whose size is no constant", "Write a number, or an INTERVAL."
    # Spark accepts the frame that the function has by default.
    if ordered and start != end and (start, end) != _USUAL:
        return "cannot have this frame", "Remove ROWS or RANGE: the function has its own frame."
    if start == (_UNBOUNDED, _FOLLOWING) or end == (_UNBOUNDED, _PRECEDING):
        return "has a frame that ends before it starts", "Swap the bounds of BETWEEN."
    low, high = _offset(start), _offset(end)
    if low is not None and high is not None and low > high:
        return "has a frame that ends before it starts", "Swap the bounds of BETWEEN."
    if str(spec.args.get("kind")).upper() == "RANGE":
        return _range(window, start, end)
    return None


def _range(window: exp.Window, start: _Bound, end: _Bound) -> Problem | None:
    order = window.args.get("order")
    keys = [one.this for one in order.expressions] if order is not None else []
    if not keys:
        whole = start == (_UNBOUNDED, _PRECEDING) and end == (_UNBOUNDED, _FOLLOWING)
        hint = "Write ORDER BY before RANGE, or leave RANGE out."
        return None if whole else ("has RANGE without an order of the rows", hint)
    values = [one for one, _ in (start, end) if isinstance(one, exp.Expr)]
    if not values:
        return None
    if len(keys) > 1:
        return (
            "has a RANGE of values over an order of several columns",
            "Order by one column, or count rows: ROWS BETWEEN …",
        )
    kind = sure_kind(keys[0])
    if kind is not None and kind not in _DISTANCES:
        return f"has a RANGE of values over {kind}", "Count rows instead: ROWS BETWEEN …"
    return None


def _bound(spec: exp.Expr, name: str) -> _Bound:
    """A bound and its side; a frame without an end ends at the current row."""
    value = spec.args.get(name) or _CURRENT
    side = str(spec.args.get(f"{name}_side") or "").upper()
    return (value if isinstance(value, exp.Expr) else str(value).upper(), side)


def _offset(bound: _Bound) -> int | None:
    """The distance of a bound from the current row; None if it is not a whole number.

    Spark compares only two distances: a frame from 1 FOLLOWING to CURRENT ROW is empty.
    """
    value, side = bound
    if isinstance(value, exp.Literal) and value.is_int:
        return int(value.this) * (-1 if side == _PRECEDING else 1)
    return None

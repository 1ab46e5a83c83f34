"""PostgreSQL's geometric types as the Debezium connector encodes them.

It sends the shape in well-known binary (little-endian), next to the coordinates or alone.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_NUMBER = re.compile(r"[-+]?(?:Infinity|NaN|[\d.]+(?:[eE][-+]?\d+)?)")
_POINT, _LINE_STRING, _POLYGON = 1, 2, 3
Corner = tuple[float, float]


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _NUMBER.findall(text)]


def _corners(text: str) -> list[Corner]:
    numbers = _numbers(text)
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _binary(kind: int, corners: Sequence[Corner]) -> str:
    head = struct.pack("<BI", 1, kind)
    if kind == _POLYGON:
        head += struct.pack("<I", 1)
    if kind != _POINT:
        head += struct.pack("<I", len(corners))
    body = b"".join(struct.pack("<dd", *corner) for corner in corners)
    return base64.b64encode(head + body).decode()


def _geometry(kind: int, corners: Sequence[Corner], **extensions: str) -> dict[str, Any]:
    return {"wkb": _binary(kind, corners), "srid": None, "extensions": extensions}


def _point(text: str) -> dict[str, Any]:
    [corner] = _corners(text)
    return {"x": corner[0], "y": corner[1], "wkb": _binary(_POINT, [corner]), "srid": None}


def _line(text: str) -> dict[str, Any]:
    return dict(zip("abc", _numbers(text), strict=True))


def _segment(text: str) -> dict[str, Any]:
    return _geometry(_LINE_STRING, _corners(text), type="lseg")


def _box(text: str) -> dict[str, Any]:
    (right, top), (left, bottom) = _corners(text)
    around = [(right, top), (right, bottom), (left, bottom), (left, top), (right, top)]
    return _geometry(_POLYGON, around, type="box")


def _path(text: str) -> dict[str, Any]:
    closed = "true" if text.startswith("(") else "false"
    return _geometry(_LINE_STRING, _corners(text), type="path", closed=closed)


def _polygon(text: str) -> dict[str, Any]:
    corners = _corners(text)
    return _geometry(_POLYGON, [*corners, corners[0]], type="polygon")


def _circle(text: str) -> dict[str, Any]:
    x, y, radius = _numbers(text)
    return {"center": _point(f"({x},{y})"), "radius": radius}


SHAPES: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "point": _point,
    "line": _line,
    "lseg": _segment,
    "box": _box,
    "path": _path,
    "polygon": _polygon,
    "circle": _circle,
}

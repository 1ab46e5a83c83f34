"""The header of a SQL file: a leading block comment whose first word is the layer, then YAML."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spark_jobs.definitions.errors import (
    DuplicateHeaderError,
    MissingHeaderError,
    WrongLayerHeaderError,
)
from spark_jobs.errors import Location
from spark_jobs.names import Layer

_OPENING = re.compile(r"\s*/\*[ \t]*([A-Za-z_]*)([^\n]*?)(?=\n|\*/|\Z)")
_SECOND = re.compile(r"/\*[ \t]*(?:silver|gold)[ \t]*\n")


@dataclass(frozen=True)
class SplitFile:
    """A SQL file, split into header and statement."""

    # The YAML of the header, after its first line.
    header: str
    header_line: int
    # The whole file with a blank header, so that locations are those of the file.
    padded: str

    @property
    def sql(self) -> str:
        """The statement as written, without the header."""
        return self.padded.strip().rstrip(";").rstrip()


def split_header(text: str, file: str, layer: Layer) -> SplitFile:
    """Split the header from the statement.

    Raises:
        MissingHeaderError: the file does not start with a header, or the header has no end, or
            its first line has more than the layer.
        WrongLayerHeaderError: the header is that of another layer.
        DuplicateHeaderError: a second header follows.
    """
    start = len(text) - len(text.lstrip())
    place = _place(text, start, file)
    opening = _OPENING.match(text)
    if not opening:
        raise MissingHeaderError(layer, "it does not start with a comment", location=place)
    word = opening[1].lower()
    if word not in (Layer.SILVER, Layer.GOLD):
        raise MissingHeaderError(
            layer, f"its first comment does not start with '{layer}'", location=place
        )
    if word != layer:
        raise WrongLayerHeaderError(word, layer, location=place)
    if opening[2].strip():
        more = _place(text, opening.start(2), file)
        raise MissingHeaderError(layer, f"more follows '{layer}' in its line", location=more)
    end = text.find("*/", opening.end())
    if end < 0:
        raise MissingHeaderError(layer, "the comment has no end", location=place)
    second = _SECOND.search(text, end)
    if second:
        raise DuplicateHeaderError(location=_place(text, second.start(), file))
    header = text[opening.end() : end].removeprefix("\n")
    header_line = text.count("\n", 0, opening.end()) + 2
    blank = re.sub(r"[^\n]", " ", text[: end + 2])
    return SplitFile(header, header_line, blank + text[end + 2 :])


def _place(text: str, offset: int, file: str) -> Location:
    line_start = text.rfind("\n", 0, offset) + 1
    return Location(file, text.count("\n", 0, offset) + 1, offset - line_start + 1)

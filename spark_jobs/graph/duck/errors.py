"""Why a query is not translated. Nobody meets it as an error: Spark computes then."""

from __future__ import annotations


class NotTranslatedError(Exception):
    """A query has something that is not on the list of what both engines agree about.

    Attributes:
        what: it, in words that fit behind "has".
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

"""Why a query is not translated. Users never see this error: Spark computes the query."""

from __future__ import annotations


class NotTranslatedError(Exception):
    """A query has something that is not on the closed list.

    Attributes:
        what: a description that fits after "has".
    """

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

"""Steps on a DataFrame whose columns are made once, for all batches of a stream.

Each function of Spark that makes a column is several calls into the JVM: typing the records of one
batch took five thousand, half a second, and nothing in them depends on the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

_STEPS = frozenset({"select", "withColumn", "withColumns", "alias"})


@dataclass(frozen=True)
class _Recorder:
    """Stands for a DataFrame and notes what is asked of it.

    Attributes:
        steps: method and arguments of each call, first to last.
    """

    steps: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def __getattr__(self, name: str) -> Callable[..., _Recorder]:
        if name not in _STEPS:
            raise AttributeError(name)

        def noted(*arguments: Any) -> _Recorder:
            if name == "select":
                # A name becomes a column with each call.
                arguments = tuple(sf.col(one) if isinstance(one, str) else one for one in arguments)
            return _Recorder((*self.steps, (name, arguments)))

        return noted


def prepared(transform: Callable[[DataFrame], DataFrame]) -> Callable[[DataFrame], DataFrame]:
    """The same steps as a function's, without making their columns again.

    Args:
        transform: selects, adds columns and names relations, whatever the DataFrame it gets.
    """
    recorder = cast("_Recorder", transform(cast("DataFrame", _Recorder())))

    def applied(frame: DataFrame) -> DataFrame:
        for name, arguments in recorder.steps:
            frame = getattr(frame, name)(*arguments)
        return frame

    return applied

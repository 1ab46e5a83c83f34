"""Records the steps on a DataFrame once, and replays them for each batch of a stream.

Each function that builds a column makes several calls into the JVM. Typing the records of a batch
took five thousand calls, half a second, although the columns do not depend on the batch.
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
    """Stands in for a DataFrame and records the calls.

    Attributes:
        steps: method and arguments of each call, in order.
    """

    steps: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def __getattr__(self, name: str) -> Callable[..., _Recorder]:
        if name not in _STEPS:
            raise AttributeError(name)

        def noted(*arguments: Any) -> _Recorder:
            if name == "select":
                # Convert names to columns once.
                arguments = tuple(sf.col(one) if isinstance(one, str) else one for one in arguments)
            return _Recorder((*self.steps, (name, arguments)))

        return noted


def prepared(transform: Callable[[DataFrame], DataFrame]) -> Callable[[DataFrame], DataFrame]:
    """A function that applies the same steps as ``transform``, without building columns again.

    Args:
        transform: uses only select, withColumn, withColumns and alias, independent of the
            DataFrame.
    """
    recorder = cast("_Recorder", transform(cast("DataFrame", _Recorder())))

    def applied(frame: DataFrame) -> DataFrame:
        for name, arguments in recorder.steps:
            frame = getattr(frame, name)(*arguments)
        return frame

    return applied

"""Conditions of sinks. A refused sink waits for a person; any other is tried again by itself."""

from __future__ import annotations

from collections.abc import Sequence

from spark_jobs.errors import LakehouseError, did_you_mean


class SinkRefusedError(LakehouseError):
    """The base of what only a person can cure."""

    condition = "SINK_REFUSED"


class SinkGapError(SinkRefusedError):
    """The changes since the last delivery are not there, or would not fit any more."""

    condition = "SINK_GAP"

    def __init__(self, sink: str, reason: str) -> None:
        self.sink = sink
        self.reason = reason
        super().__init__(
            f"sink {sink!r} cannot follow its table: {reason}",
            hint=f"Build it from the table as it is now: tidemark sink rebuild {sink}",
        )


class SinkOccupiedError(SinkRefusedError):
    """A new sink's place holds rows that it did not deliver."""

    condition = "SINK_OCCUPIED"

    def __init__(self, sink: str, target: str) -> None:
        self.sink = sink
        self.target = target
        super().__init__(
            f"sink {sink!r} is new, and {target!r} holds rows that it did not deliver",
            hint="Give the sink another place in its header, or let it take this one, which "
            f"replaces what is there: tidemark sink rebuild {sink}",
        )


class SinkKeysNotUniqueError(SinkRefusedError):
    """Two rows of the table have the same key."""

    condition = "SINK_KEYS_NOT_UNIQUE"

    def __init__(self, sink: str, key: str) -> None:
        self.sink = sink
        self.key = key
        super().__init__(
            f"sink {sink!r}: several rows have the key {key}",
            hint='Name columns that tell the rows apart with "keys" in the table\'s header.',
        )


class SinkValueError(SinkRefusedError):
    """The system that a sink delivers to refuses a value or a statement."""

    condition = "SINK_VALUE"

    def __init__(self, sink: str, cause: str) -> None:
        self.sink = sink
        self.cause = cause
        super().__init__(
            f"sink {sink!r}: what it delivers is refused",
            detail=cause,
            hint="Mend the value in the table's SELECT, or the right or the table that the "
            "message names.",
        )


class SinkUnreachableError(LakehouseError):
    """The system that a sink delivers to does not answer."""

    condition = "SINK_UNREACHABLE"

    def __init__(self, sink: str, system: str, cause: str) -> None:
        self.sink = sink
        self.system = system
        self.cause = cause
        super().__init__(
            f"sink {sink!r}: {system} does not answer",
            detail=cause,
            hint="It is tried again by itself. See whether that server runs, and whether the "
            "address in the environment is right.",
        )


class SinkAddressMissingError(LakehouseError):
    """Nothing says where a system is."""

    condition = "SINK_ADDRESS_MISSING"

    def __init__(self, sink: str, system: str) -> None:
        self.sink = sink
        self.system = system
        super().__init__(
            f"sink {sink!r}: nothing says where its {system} server is",
            hint=f"Set TIDEMARK_SINKS__{system.upper()} in the environment, or start the local "
            "stack: make up",
        )


class SinkMovedError(LakehouseError):
    """Somebody else delivered to the sink at the same moment."""

    condition = "SINK_MOVED"

    def __init__(self, sink: str) -> None:
        self.sink = sink
        super().__init__(
            f"sink {sink!r} was written by another process at the same moment",
            hint="Nothing was delivered twice. Run it again: it looks at the sink anew.",
        )


class SinkUnknownError(LakehouseError):
    """No table declares a sink of that name."""

    condition = "SINK_UNKNOWN"

    def __init__(self, sink: str, known: Sequence[str]) -> None:
        self.sink = sink
        names = f"Sinks are {', '.join(known)}." if known else "No table declares one."
        super().__init__(f"no sink has the name {sink!r}", hint=did_you_mean(sink, known) or names)


class SinkNotBuiltError(LakehouseError):
    """A sink that holds no version of its table."""

    condition = "SINK_NOT_BUILT"

    def __init__(self, sink: str) -> None:
        self.sink = sink
        super().__init__(
            f"sink {sink!r} was not built yet, or its last delivery did not end",
            hint=f"The streaming application does it; by hand: tidemark sink run {sink}",
        )

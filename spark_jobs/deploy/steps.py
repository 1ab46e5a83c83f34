"""The steps of an apply, in an order that keeps the pipeline working."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from spark_jobs.definitions.vocabulary import SourceFormat
from spark_jobs.deploy.change import EXPENSIVE, Action, Change, Kind, Work
from spark_jobs.deploy.streams import silver_definition
from spark_jobs.graph.manifest import Manifest


class StepKind(StrEnum):
    """Kinds of steps, in the order of an apply."""

    TOPIC = "topic"
    CONNECTOR = "connector"
    DISCONNECT = "disconnect"
    MANIFEST = "manifest"
    STREAM = "stream"
    STOP = "stop"
    SNAPSHOT = "snapshot"
    TAKE_UP = "take up"
    SEED = "seed"
    PROMOTE = "promote"
    BUILD = "build"


_ORDER = list(StepKind)


@dataclass(frozen=True)
class Step:
    """One step, recorded when it is done.

    Attributes:
        subject: a topic, source, table or view.
    """

    kind: StepKind
    subject: str = ""

    def __str__(self) -> str:
        return f"{self.kind.value} {self.subject}".strip()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Decode the result of ``str``.

        >>> Step.parse("take up silver.orders").kind.name, Step.parse("manifest").subject
        ('TAKE_UP', '')
        """
        kind = next(one for one in _ORDER if text == one.value or text.startswith(f"{one.value} "))
        return cls(kind, text.removeprefix(kind.value).strip())

    @property
    def title(self) -> str:
        """What is done, as text for users."""
        titles = {
            StepKind.TOPIC: "create topic {}",
            StepKind.CONNECTOR: "let the connector capture {}",
            StepKind.DISCONNECT: "delete the connector, its position and its replication slot",
            StepKind.MANIFEST: "activate the manifest",
            StepKind.STREAM: "start stream {}",
            StepKind.STOP: "stop stream {}",
            StepKind.SNAPSHOT: "read the rows of source {}",
            StepKind.TAKE_UP: "read the existing records of {}",
            StepKind.SEED: "load the file of source {}",
            StepKind.PROMOTE: "publish {} from its environment",
            StepKind.BUILD: "compute {}",
        }
        return titles[self.kind].format(self.subject)


def steps_of(
    changes: Sequence[Change],
    before: Manifest,
    after: Manifest,
    *,
    carried: Iterable[Step] = (),
) -> tuple[Step, ...]:
    """The steps of an apply.

    Args:
        changes: the differences; if empty, only carried steps are left.
        before: the running manifest.
        after: the new manifest.
        carried: open steps of an unfinished deployment.
    """
    found = dict.fromkeys(
        [
            *_capture(changes, before, after),
            *_streams(before, after),
            *_seeds(changes),
            *_builds(changes),
        ]
    )
    found |= dict.fromkeys(one for one in carried if _still_wanted(one, after))
    # Also if only open steps are left, so that streams report this deployment's number.
    if found or any(one.kind is not Kind.SETTING for one in changes):
        found[Step(StepKind.MANIFEST)] = None
    # A carried view may be an input of another one.
    tiers = {str(one.table_name): one.tier for one in after.gold.values()}
    return tuple(sorted(found, key=lambda one: (_ORDER.index(one.kind), tiers.get(one.subject, 0))))


def _capture(changes: Sequence[Change], before: Manifest, after: Manifest) -> Iterator[Step]:
    added = [one for one in changes if one.kind is Kind.SOURCE and one.action is Action.ADDED]
    for change in added:
        topic = after.sources[change.name].topic
        if topic is not None:
            yield Step(StepKind.TOPIC, topic)
    if captured(before) != captured(after):
        yield connector_step(after)
    for change in added:
        if Work.SNAPSHOT in change.work:
            yield Step(StepKind.SNAPSHOT, change.name)
            silver = [one for one in after.silver.values() if one.source == change.name]
            yield from (Step(StepKind.TAKE_UP, str(one.table_name)) for one in silver)


def _streams(before: Manifest, after: Manifest) -> Iterator[Step]:
    was, now = stream_definitions(before), stream_definitions(after)
    for name in sorted(now):
        if was.get(name) != now[name]:
            yield Step(StepKind.STREAM, name)
    for name in sorted(was.keys() - now.keys()):
        yield Step(StepKind.STOP, name)


def stream_definitions(manifest: Manifest) -> dict[str, str]:
    """The definition of each streaming query, by the table that it writes."""
    landed = {name: one for name, one in manifest.sources.items() if one.format.streamed}
    bronze = {str(one.table_name): one.topic or "" for one in landed.values()}
    silver = {
        str(one.table_name): silver_definition(landed[one.source], one)
        for one in manifest.silver.values()
        if one.source in landed
    }
    return {**bronze, **silver}


def _seeds(changes: Sequence[Change]) -> Iterator[Step]:
    for change in changes:
        if Work.LOAD_FILE in change.work:
            yield Step(StepKind.SEED, change.name)


def _builds(changes: Sequence[Change]) -> Iterator[Step]:
    for change in changes:
        if change.kind is Kind.GOLD and EXPENSIVE & set(change.work):
            yield Step(StepKind.BUILD, change.name)


# What a start of the stack does, too.
_OF_A_START = {StepKind.TOPIC, StepKind.CONNECTOR, StepKind.DISCONNECT, StepKind.MANIFEST}


def left_by_start(unfinished: Iterable[str], after: Manifest) -> list[str]:
    """The open steps of a deployment that a start of the stack with a manifest does not do."""
    steps = map(Step.parse, unfinished)
    return [str(one) for one in steps if one.kind not in _OF_A_START and _still_wanted(one, after)]


def _still_wanted(step: Step, after: Manifest) -> bool:
    """Whether an open step's subject is still declared."""
    silver = {str(one.table_name) for one in after.silver.values()}
    tables = silver | {str(one.table_name) for one in after.gold.values()}
    match step.kind:
        case StepKind.SEED:
            source = after.sources.get(step.subject)
            return source is not None and source.path is not None
        case StepKind.SNAPSHOT:
            return step.subject in after.sources
        case StepKind.TOPIC:
            return step.subject in {one.topic for one in after.sources.values()}
        case StepKind.TAKE_UP | StepKind.BUILD | StepKind.PROMOTE:
            return step.subject in tables
        case StepKind.STREAM:
            return step.subject in stream_definitions(after)
        case StepKind.STOP:
            return step.subject not in stream_definitions(after)
        case StepKind.CONNECTOR | StepKind.DISCONNECT:
            return step == connector_step(after)
        case StepKind.MANIFEST:
            return True


def connector_step(manifest: Manifest) -> Step:
    """What makes the connector capture the tables of a manifest, and no others.

    Without tables it is deleted: it would keep the log of its database. A connector that stays
    would also not read the rows of a table that is declared later, as it does when it is new.
    """
    tables = captured(manifest)
    return Step(StepKind.CONNECTOR, ", ".join(tables)) if tables else Step(StepKind.DISCONNECT)


def captured(manifest: Manifest) -> list[str]:
    """The tables that the connector captures, sorted, as ``schema.table``.

    A source without a ``table`` is represented by its topic, which is named after the table.
    """
    return sorted(
        source.table or source.topic or ""
        for source in manifest.sources.values()
        if source.format is SourceFormat.DEBEZIUM
    )

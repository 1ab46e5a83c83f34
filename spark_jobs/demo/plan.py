"""The plan of a load run: a deterministic sequence of operations for given parameters.

It uses no clock and no service. The summary counts the plan's operations, and tests compare them
with the lake.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from spark_jobs.demo import malformed
from spark_jobs.demo.events import EventMaker
from spark_jobs.demo.operations import Operation, Record, Trait
from spark_jobs.demo.shop import Shop

# Each run has its own block of ids.
IDS_PER_RUN = 10_000_000
USERS, PRODUCTS, TITLES = 40, 24, 30
# Share of all steps; a transaction has about two operations.
TRANSACTION_SHARE = 0.18
TRAITS = {
    Trait.FRESH: 800,
    Trait.OUT_OF_ORDER: 90,
    Trait.DUPLICATE: 45,
    Trait.LATE: 35,
    Trait.NULL_KEY: 15,
    Trait.MALFORMED: 15,
}
# A duplicate repeats one of the last records of any topic.
REPEATABLE_RECORDS = 200
OUT_OF_ORDER_SECONDS = 120
LATEST_HOURS = 26


@dataclass(frozen=True)
class LoadRun:
    """The parameters of a plan.

    Attributes:
        seed: of the random generator.
        run: number of the run on its database; ids of different runs never collide.
        start: the time that event times are relative to.
        rate: operations per second: changes of rows and Kafka records.
        seconds: duration of the run, without the initial rows.
    """

    seed: int
    run: int
    start: datetime
    rate: float
    seconds: float


def plan(load: LoadRun) -> Iterator[Operation]:
    """The operations of a run, in the order in which they happen."""
    rng = random.Random(f"{load.seed}/{load.run}")
    shop = Shop(rng, first_id=load.run * IDS_PER_RUN)
    opening = shop.opening(load.start, users=USERS, products=PRODUCTS, titles=TITLES)
    yield Operation(0.0, opening)
    records = RecordMaker(rng, EventMaker(rng, shop), load.run)
    done = 0
    while done < load.rate * load.seconds:
        at = done / load.rate
        now = load.start + timedelta(seconds=at)
        if rng.random() < TRANSACTION_SHARE:
            operation = Operation(at, shop.step(now))
        else:
            operation = Operation(at, records.draw(now))
        yield operation
        done += operation.action.weight


@dataclass
class RecordMaker:
    """Converts events to Kafka records, some with a trait."""

    rng: random.Random
    events: EventMaker
    run: int
    made: int = 0
    sent: deque[Record] = field(default_factory=lambda: deque(maxlen=REPEATABLE_RECORDS))

    def draw(self, now: datetime) -> Record:
        """The next record."""
        trait = self.rng.choices(list(TRAITS), list(TRAITS.values()))[0]
        if trait is Trait.DUPLICATE and self.sent:
            again = self.rng.choice(self.sent)
            return Record(again.topic, again.key, again.value, Trait.DUPLICATE)
        if trait is Trait.DUPLICATE:
            trait = Trait.FRESH
        record = self._new(trait, now)
        if trait is not Trait.MALFORMED:
            self.sent.append(record)
        return record

    def _new(self, trait: Trait, now: datetime) -> Record:
        topic, key, drawn = self.events.draw()
        self.made += 1
        event_time = now - self._age(trait)
        body = {
            "event_id": f"{self.run}-{self.made}",
            **drawn,
            "event_time": event_time.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }
        encoded_key = None if trait is Trait.NULL_KEY else str(key).encode()
        if trait is not Trait.MALFORMED:
            return Record(topic, encoded_key, malformed.encode(body), trait)
        kind = malformed.draw(self.rng)
        return Record(topic, encoded_key, malformed.spoil(kind, topic, body), trait, kind)

    def _age(self, trait: Trait) -> timedelta:
        if trait is Trait.LATE:
            return timedelta(hours=self.rng.uniform(0.1, LATEST_HOURS))
        if trait is Trait.OUT_OF_ORDER:
            return timedelta(seconds=self.rng.uniform(1, OUT_OF_ORDER_SECONDS))
        return timedelta(0)

"""A discrete-event simulation of a machine with pools and tasks; times are in seconds.

It is deterministic and uses no clock. Running tasks share the cores evenly. Tasks wait for slots of
their pool in order of arrival; runs of one queue, such as refreshes of a view, are sequential.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        pool: the pool whose slot it needs.
        work: core-seconds.
        alone: tasks with the same value do not run concurrently; None: no restriction.
    """

    pool: str
    work: float
    alone: str | None = None


@dataclass
class Run:
    """Sequential tasks.

    Attributes:
        queue: runs of one queue are sequential too; None: it waits for no other run.
        tasks: called at the start of the run, because the work depends on that time.
        on_end: called with the end time of the last task.
    """

    queue: str | None
    tasks: Callable[[float], Sequence[Task]]
    on_end: Callable[[float], None] = lambda _: None
    left: deque[Task] = field(default_factory=deque, init=False)


@dataclass
class Machine:
    """A machine that executes runs.

    Attributes:
        cores: shared by the tasks; a task uses one at most.
        slots: of each pool.
        parallelism: upper bound of concurrent tasks over all pools.
        hand_over: seconds from the end of a task until the next one waits for a slot.
        peak: maximum number of concurrent tasks.
        most_open: maximum number of runs that were submitted and had not ended.
        done: core-seconds of finished work.
    """

    cores: int
    slots: Mapping[str, int]
    parallelism: int
    hand_over: float
    now: float = 0.0
    peak: int = 0
    most_open: int = 0
    done: float = 0.0
    _events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _count: int = 0
    _open: int = 0
    _running: dict[int, tuple[Run, Task, float]] = field(default_factory=dict)
    _waiting: list[tuple[Run, Task]] = field(default_factory=list)
    _queues: dict[str, deque[Run]] = field(default_factory=lambda: defaultdict(deque))

    def at(self, moment: float, event: Callable[[], None]) -> None:
        """Schedule an event; events of the same time run in the order of these calls."""
        self._count += 1
        heapq.heappush(self._events, (moment, self._count, event))

    def submit(self, run: Run) -> None:
        """Start a run now, or after the others of its queue."""
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        if run.queue is None:
            self._begin(run)
            return
        queue = self._queues[run.queue]
        queue.append(run)
        if len(queue) == 1:
            self._begin(run)

    def pending(self, queue: str) -> int:
        """Runs of a queue that have not ended."""
        return len(self._queues[queue])

    def run(self, *, until: float) -> None:
        """Advance the time."""
        while True:
            self._start()
            rate = min(1.0, self.cores / len(self._running)) if self._running else 1.0
            soonest = min(self._running, key=self._left, default=None)
            ends = None if soonest is None else self.now + self._left(soonest) / rate
            event = self._events[0][0] if self._events else None
            moment = min((one for one in (ends, event) if one is not None), default=None)
            if moment is None or moment > until:
                self._pass(until if moment is not None else self.now, rate)
                return
            self._pass(moment, rate)
            if event is not None and event <= moment:
                heapq.heappop(self._events)[2]()
            elif soonest is not None:
                self._end(soonest)

    def _left(self, key: int) -> float:
        return self._running[key][2]

    def _pass(self, moment: float, rate: float) -> None:
        span = (moment - self.now) * rate
        self.now = moment
        for key, (run, task, left) in self._running.items():
            self._running[key] = (run, task, left - span)
        self.done += span * len(self._running)

    def _begin(self, run: Run) -> None:
        run.left.extend(run.tasks(self.now))
        self._next(run)

    def _next(self, run: Run) -> None:
        if run.left:
            self._waiting.append((run, run.left.popleft()))
            return
        self._open -= 1
        run.on_end(self.now)
        if run.queue is not None:
            queue = self._queues[run.queue]
            queue.popleft()
            if queue:
                self._begin(queue[0])

    def _end(self, key: int) -> None:
        run, _, _ = self._running.pop(key)
        if run.left:
            self.at(self.now + self.hand_over, lambda: self._next(run))
        else:
            self._next(run)

    def _start(self) -> None:
        """Assign free slots to waiting tasks, oldest first."""
        used: dict[str, int] = defaultdict(int)
        alone = set()
        for _, task, _ in self._running.values():
            used[task.pool] += 1
            alone.add(task.alone)
        still = []
        for run, task in self._waiting:
            free = used[task.pool] < self.slots[task.pool]
            free = free and len(self._running) < self.parallelism
            if not free or (task.alone is not None and task.alone in alone):
                still.append((run, task))
                continue
            used[task.pool] += 1
            alone.add(task.alone)
            self._count += 1
            self._running[self._count] = (run, task, task.work)
        self._waiting = still
        self.peak = max(self.peak, len(self._running))

"""The simulated machine, on days short enough to reckon by hand."""

from __future__ import annotations

from benchmarks.simulation import Machine, Run, Task


def machine(cores: int = 1, hand_over: float = 0.0, parallelism: int = 9, **slots: int) -> Machine:
    return Machine(cores, slots or {"live": 9}, parallelism, hand_over)


class Ends(dict[str, float]):
    """When each run ended."""

    def run(self, name: str, *tasks: Task, queue: str | None = None) -> Run:
        return Run(queue, lambda _: tasks, lambda now: self.update({name: now}))


def task(work: float, pool: str = "live", alone: str | None = None) -> Task:
    return Task(pool, work, alone)


def test_tasks_share_the_cores_evenly() -> None:
    ends, one = Ends(), machine(cores=2)
    for name, work in (("a", 2.0), ("b", 4.0), ("c", 4.0)):
        one.submit(ends.run(name, task(work)))
    one.run(until=100)
    # Three on two cores until a has done 2; then one core each.
    assert ends == {"a": 3.0, "b": 5.0, "c": 5.0}
    assert (one.peak, one.most_open, one.done) == (3, 3, 10.0)


def test_a_pool_lets_as_many_run_as_it_has_slots_the_oldest_first() -> None:
    ends, one = Ends(), machine(cores=4, live=1, replay=1)
    for name in "abc":
        one.submit(ends.run(name, task(2.0)))
    one.submit(ends.run("d", task(2.0, "replay")))
    one.run(until=100)
    assert ends == {"a": 2.0, "b": 4.0, "c": 6.0, "d": 2.0}
    assert one.peak == 2


def test_no_more_run_than_the_parallelism_allows() -> None:
    ends, one = Ends(), machine(cores=4, parallelism=2)
    for name in "abc":
        one.submit(ends.run(name, task(1.0)))
    one.run(until=100)
    assert ends == {"a": 1.0, "b": 1.0, "c": 2.0}


def test_tasks_of_a_run_and_runs_of_a_queue_follow_each_other() -> None:
    ends, one = Ends(), machine(cores=4, hand_over=0.5)
    for name in "ab":
        one.submit(ends.run(name, task(1.0), task(1.0), queue="view"))
    assert one.pending("view") == 2
    one.run(until=100)
    assert ends == {"a": 2.5, "b": 5.0}
    assert one.pending("view") == 0


def test_exclusive_tasks_run_one_at_a_time_beside_others() -> None:
    ends, one = Ends(), machine(cores=4)
    for name, mark in (("a", "x"), ("b", "x"), ("c", None)):
        one.submit(ends.run(name, task(1.0, alone=mark)))
    one.run(until=100)
    assert ends == {"a": 1.0, "b": 2.0, "c": 1.0}


def test_time_can_be_stopped_and_resumed() -> None:
    ends, one = Ends(), machine()
    one.at(3.0, lambda: one.submit(ends.run("a", task(2.0))))
    one.run(until=4.0)
    assert (ends, one.now, one.done) == ({}, 4.0, 1.0)
    one.run(until=float("inf"))
    assert (ends, one.done) == ({"a": 5.0}, 2.0)

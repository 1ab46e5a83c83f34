"""What a view's last refreshes say about the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spark_jobs.planning.experience import Forecast, PastRefresh, forecast


def followed(seconds: float, changed: int | None = 10, total: int = 1000) -> PastRefresh:
    return PastRefresh(incremental=True, seconds=seconds, changed=changed, total=total)


def computed(seconds: float, total: int | None = 1000) -> PastRefresh:
    return PastRefresh(incremental=False, seconds=seconds, changed=10, total=total)


def test_without_past_refreshes_there_is_no_forecast() -> None:
    assert forecast((), changed=10, total=1000) == Forecast()
    only = forecast([computed(1.0)], changed=10, total=1000)
    assert (only.full, only.incremental, only.favours_full) == (1.0, None, False)


def test_the_middle_of_the_last_three_counts() -> None:
    past = [followed(9.0), followed(2.0), followed(3.0), followed(100.0), computed(1.0)]
    found = forecast(past, changed=10, total=1000)
    assert (found.full, found.incremental) == (1.0, 3.0)
    assert found.favours_full
    assert found.as_dict() == {"full": 1.0, "incremental": 3.0}


@pytest.mark.parametrize(
    ("changed", "total", "expected"),
    [
        (10, 1000, (2.0, 1.0)),
        (50, 3000, (6.0, 1.0 + 40 * 40 * 2.0 / 1000)),
        (20, 3000, (6.0, 1.0 + 40 * 10 * 2.0 / 1000)),
        (4, 100, (2.0, 1.0)),
        (None, None, (2.0, 1.0)),
    ],
)
def test_more_rows_take_longer_and_fewer_as_long(
    changed: int | None, total: int | None, expected: tuple[float, float]
) -> None:
    found = forecast([computed(2.0), followed(1.0)], changed=changed, total=total)
    assert (found.full, found.incremental) == expected
    unknown = forecast([computed(2.0, None), followed(1.0, None)], changed=changed, total=total)
    assert (unknown.full, unknown.incremental) == (2.0, 1.0)


def test_a_much_smaller_change_is_tried_incrementally() -> None:
    past = [computed(1.0), followed(9.0, changed=1000)]
    assert forecast(past, changed=400, total=1000).favours_full
    found = forecast(past, changed=100, total=1000)
    assert (found.incremental, found.favours_full) == (None, False)
    past.append(followed(0.5, changed=100))
    assert not forecast(past, changed=100, total=1000).favours_full


@pytest.mark.parametrize(
    ("full", "computes", "follows", "favoured"),
    [
        (0.95, 3, 3, False),
        (0.85, 3, 3, True),
        (1.05, 1, 3, True),
        (1.1, 1, 3, False),
        (0.8, 3, 1, False),
        (0.7, 3, 1, True),
        (0.95, 1, 1, False),
        (0.85, 2, 2, True),
    ],
)
def test_a_little_faster_is_no_reason_and_first_times_are_slow(
    full: float, computes: int, follows: int, *, favoured: bool
) -> None:
    past = [*[computed(full)] * computes, *[followed(1.0)] * follows]
    assert forecast(past, changed=10, total=1000).favours_full is favoured


@pytest.mark.parametrize(
    ("full", "small", "explored"),
    [(2.0, 1.0, True), (2.0, 2.5, False), (0.9, 1.0, False), (50.0, 1.0, False)],
)
def test_a_much_larger_change_is_tried_incrementally_if_it_may_be_faster(
    full: float, small: float, *, explored: bool
) -> None:
    """Ten times the rows take up to ten times as long: where full is slower, it is no question."""
    past = [*[computed(full, total=20)] * 3, *[followed(small, changed=1, total=20)] * 3]
    found = forecast(past, changed=10, total=20)
    assert (found.incremental, found.incremental_at_least) == (10 * small, small)
    assert found.explores_incremental is explored
    assert found.favours_full is (full in {2.0, 0.9} and not explored)
    learnt = forecast([followed(9.0), *past], changed=10, total=20)
    assert (learnt.incremental, learnt.incremental_at_least, learnt.explores_incremental) == (
        9.0,
        None,
        False,
    )


@pytest.mark.parametrize(
    ("changed", "expected", "favoured"),
    [(5, 2.0, False), (5_000, 2.2, False), (50_000, 4.0, False), (2_000_000, 82.0, True)],
)
def test_what_a_row_takes_a_full_refresh_bounds_what_a_changed_row_takes(
    changed: int, expected: float, *, favoured: bool
) -> None:
    """In proportion, a change of 5,000 rows would take 2,000 seconds, and not be followed."""
    rows = 5_000_000
    past = [*[followed(2.0, changed=5, total=rows)] * 3, *[computed(5.0, total=rows)] * 3]
    found = forecast(past, changed=changed, total=rows)
    assert found.incremental == pytest.approx(expected, rel=0.01)
    assert (found.favours_full, found.explores_incremental) == (favoured, False)


def test_a_try_is_no_turn_to_full_refreshes() -> None:
    tried = replace(computed(1.0), tried=True)
    past = [followed(0.5), counted(9.0)]
    assert forecast([tried, *past], changed=10, total=1000).incremental == 0.5
    assert forecast([computed(1.0), *past], changed=10, total=1000).incremental == (9.0 + 0.5) / 2


def test_after_many_full_refreshes_changes_are_followed_once() -> None:
    past = [*[computed(1.0)] * 19, followed(5.0)]
    assert forecast(past, changed=10, total=1000).favours_full
    assert not forecast([computed(1.0), *past], changed=10, total=1000).favours_full


@pytest.mark.parametrize(
    ("full", "tables", "favours"),
    [(1.0, 200, True), (1.0, 79, False), (1.0, None, False), (60.0, 200, False)],
)
def test_before_the_first_sample_the_size_of_the_program_decides(
    full: float, tables: int | None, *, favours: bool
) -> None:
    found = forecast([computed(full)], changed=10, total=1000, tables=tables)
    assert (found.incremental, found.favours_full) == (None, favours)
    # Measured since: it was faster than its size says.
    past = [followed(0.1), computed(full)]
    assert not forecast(past, changed=10, total=1000, tables=tables).favours_full


def test_a_large_program_is_tried_after_many_full_refreshes() -> None:
    def favours(times: int) -> bool:
        past = [computed(1.0)] * times
        return forecast(past, changed=10, total=1000, tables=200).favours_full

    assert favours(19)
    assert not favours(20)


def counted(seconds: float, total: int | None = 1000) -> PastRefresh:
    return PastRefresh(incremental=True, seconds=seconds, changed=10, total=total, counted=True)


def test_counting_groups_is_no_experience_while_they_are_there() -> None:
    found = forecast([counted(9.0), computed(1.0)], changed=10, total=1000)
    assert (found.incremental, found.favours_full) == (None, False)
    found = forecast([followed(0.5), counted(9.0), computed(1.0)], changed=10, total=1000)
    assert (found.incremental, found.favours_full) == (0.5, False)


def test_computing_the_state_is_part_of_the_forecast_until_it_is_reused() -> None:
    past = [computed(1.0), counted(9.0), computed(1.0)]
    assert forecast(past, changed=10, total=1000).incremental == 9.0
    assert forecast(past, changed=10, total=1000).favours_full
    # More rows take longer to count.
    assert forecast(past, changed=10, total=2000).incremental == 18.0


def test_counting_is_spread_over_the_refreshes_that_use_it() -> None:
    rare = [computed(1.0), followed(0.5), counted(9.0), computed(1.0)]
    found = forecast(rare, changed=10, total=1000)
    assert (found.incremental, found.favours_full) == ((9.0 + 0.5) / 2, True)
    often = [computed(1.0), *[followed(0.5)] * 30, counted(9.0)]
    found = forecast(often, changed=10, total=1000)
    assert (found.incremental, found.favours_full) == ((9.0 + 30 * 0.5) / 31, False)


def here(one: PastRefresh) -> PastRefresh:
    return replace(one, in_process=True)


def test_spark_durations_do_not_forecast_refreshes_in_process() -> None:
    past = [here(followed(0.4)), followed(9.0), computed(3.0)]
    found = forecast(past, changed=10, total=1000)
    assert (found.full, found.incremental) == (None, 0.4)
    back = [followed(9.0), here(followed(0.4)), computed(3.0), here(computed(0.1))]
    assert forecast(back, changed=10, total=1000).as_dict() == {"full": 3.0, "incremental": 9.0}


@pytest.mark.parametrize(
    ("seconds", "total", "explores"),
    [
        (0.4, 1000, True),
        (0.1, 1000, False),
        (0.4, 8_000_000, True),
        (0.4, 800_000_000, False),
        (30.0, 800_000_000, True),
        (0.4, None, False),
    ],
)
def test_a_full_refresh_in_process_is_tried_where_it_may_be_quicker(
    seconds: float, total: int | None, *, explores: bool
) -> None:
    past = [*[here(followed(seconds))] * 2, computed(3.0)]
    assert forecast(past, changed=10, total=total).explores_full is explores
    assert not forecast(past[1:], changed=10, total=total).explores_full, "the first is slow"
    tried = [here(followed(seconds)), here(computed(2 * seconds)), *past]
    assert not forecast(tried, changed=10, total=total).explores_full, "once it is known"
    assert not forecast([followed(seconds)], changed=10, total=total).explores_full


def test_nothing_is_tried_before_following_is_known() -> None:
    for past in ([computed(3.0)], [here(counted(9.0)), computed(3.0)]):
        assert not forecast(past, changed=10, total=1000).explores_full


def test_a_larger_change_is_not_dared_where_its_groups_are_to_be_counted_first() -> None:
    kept = [followed(1.0, changed=1), counted(9.0, total=20), *[computed(2.0, total=20)] * 3]
    assert forecast(kept, changed=10, total=20).explores_incremental
    dropped = forecast([computed(2.0, total=20), *kept], changed=10, total=20)
    assert (dropped.incremental_at_least, dropped.favours_full) == ((9.0 + 1.0) / 2, True)


def test_one_cold_full_refresh_is_not_the_last() -> None:
    past = [here(followed(1.0)), here(computed(1.0)), here(followed(1.0))]
    assert forecast(past, changed=10, total=1000).favours_full
    past = [here(followed(1.0)), *[here(computed(1.0))] * 3, here(followed(1.0))]
    assert not forecast(past, changed=10, total=1000).favours_full


ROWS = 60_000_000


def simulated(
    *, first: float, full: float, follows: float, refreshes: int, counts: float = 0.0
) -> list[PastRefresh]:
    """Refreshes of a view whose costs do not change, newest first, as the planner chooses them.

    Args:
        first: seconds of the first build.
        full: seconds of each later full refresh.
        follows: seconds of an incremental refresh.
        refreshes: how many of them come after the first build.
        counts: seconds of an incremental refresh that computes the aggregate state; 0: there is
            none.
    """
    past = [replace(computed(first, total=ROWS), cold=True)]
    for _ in range(refreshes):
        found = forecast(past[:40], changed=10, total=ROWS)
        if found.favours_full or found.explores_full:
            one = replace(computed(full, total=ROWS), tried=not found.favours_full)
        elif counts and not past[0].incremental:
            one = counted(counts, total=ROWS)
        else:
            one = followed(follows, total=ROWS)
        past.insert(0, one)
    return past


def test_a_view_whose_first_build_was_cold_finds_that_full_refreshes_are_cheaper() -> None:
    past = simulated(first=14.0, full=4.5, follows=6.2, counts=9.0, refreshes=30)
    words = ["follow" if one.incremental else "full" for one in reversed(past)]
    assert words[:6] == ["full", *["follow"] * 4, "full"]
    assert [one.tried for one in reversed(past)].index(True) == 5
    assert words[6:] == ["full"] * 19 + ["follow"] + ["full"] * 5, "one in twenty looks again"


@pytest.mark.parametrize("counts", [0.0, 9.0])
def test_a_full_refresh_that_is_no_cheaper_is_tried_only_once(counts: float) -> None:
    """What the try costs is bounded: once what the first build did, and counting once more."""
    past = simulated(first=14.0, full=12.0, follows=6.2, counts=counts, refreshes=39)
    assert [one.tried for one in past].count(True) == 1
    assert all(one.incremental for one in past[: -(5 + bool(counts))])
    least = 14.0 + counts + 6.2 * (39 - bool(counts))
    assert sum(one.seconds for one in past) - least <= 14.0 + counts - 6.2


@pytest.mark.parametrize(
    ("first", "follows", "tried"),
    [(14.0, 6.2, True), (18.6, 6.2, True), (18.7, 6.2, False), (5.0, 2.0, True), (5.0, 1.9, False)],
)
def test_a_full_refresh_is_tried_where_it_may_pay(
    first: float, follows: float, *, tried: bool
) -> None:
    """The first build bounds what the try costs, and a quick refresh has little to gain."""
    past = simulated(first=first, full=99.0, follows=follows, refreshes=8)
    assert any(one.tried for one in past) is tried


def test_a_cold_first_build_counts_until_another_full_refresh() -> None:
    cold = replace(computed(14.0, total=ROWS), cold=True)
    past = [*[followed(6.2, total=ROWS)] * 3, cold]
    found = forecast(past, changed=10, total=ROWS)
    assert (found.full, found.explores_full, found.favours_full) == (14.0, True, False)
    assert forecast([*past[:3], replace(cold, cold=False)], changed=10, total=ROWS).full == 14.0
    found = forecast([computed(4.5, total=ROWS), *past], changed=10, total=ROWS)
    assert (found.full, found.explores_full, found.favours_full) == (4.5, False, True)


@pytest.mark.parametrize(
    ("total", "changed", "vain"),
    [(99_999, 10, False), (None, 10, False), (ROWS, 100, False), (ROWS, 10, True)],
)
def test_a_full_refresh_is_not_tried_of_tiny_tables_or_unlike_changes_or_again(
    total: int | None, changed: int, *, vain: bool
) -> None:
    cold = replace(computed(3.0, total=total), cold=True)
    past = [*[followed(2.5, total=total or 1)] * 3, cold]
    found = forecast(past, changed=changed, total=total, tried_in_vain=vain)
    assert not found.explores_full
    known = [*[followed(2.5, total=ROWS)] * 3, replace(computed(3.0, total=ROWS), cold=True)]
    assert forecast(known, changed=10, total=ROWS).explores_full
    assert not forecast(known[1:], changed=10, total=ROWS).explores_full, "two may be slow ones"


def test_a_try_in_process_that_failed_is_not_repeated() -> None:
    past = [*[here(followed(0.4))] * 2, computed(3.0)]
    assert forecast(past, changed=10, total=1000).explores_full
    assert not forecast(past, changed=10, total=1000, tried_in_vain=True).explores_full

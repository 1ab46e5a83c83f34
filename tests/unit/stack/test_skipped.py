"""Changes that the connector left out are reported until a person has resolved them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from spark_jobs.settings import Settings, load_settings
from spark_jobs.stack.connect import prepare_worker, skipped_file, worker_files
from spark_jobs.stack.connector import connector_config
from spark_jobs.stack.skipped import Skipped, answer, capture_problem, skipped, unanswered

# As Debezium 3.7 writes them through the worker's logging.
LINES = (
    (
        "2026-11-23T05:25:54.519Z Error while processing event at offset {transaction_id=759, "
        "lsn_proc=37573496, lsn_events_processed=1, messageType=INSERT, lsn_commit=37537656, "
        "lsn=37573496, txId=759, ts_usec=1795411501051575}\n"
    ),
    "2026-11-23T05:26:00.001Z Some other warning of the same class\n",
    (
        "2026-11-23T05:26:41.154Z Error while processing event at offset {lsn=4294967297} "
        "java.lang.NumberFormatException\n"
    ),
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = load_settings(tmp_path, state_dir=tmp_path / "state")
    skipped_file(found).parent.mkdir(parents=True)
    return found


def test_where_nothing_was_left_out_there_is_nothing_to_answer(settings: Settings) -> None:
    assert skipped(settings) == []
    assert capture_problem(settings) is None
    assert answer(settings, by="me", reason="nothing") == 0


def test_a_change_that_was_left_out_waits_for_an_answer(settings: Settings) -> None:
    skipped_file(settings).write_text("".join(LINES))
    first, second = unanswered(settings)
    assert first == Skipped(
        at=datetime(2026, 11, 23, 5, 25, 54, 519000, tzinfo=UTC),
        lsn="0/23D5378",
        transaction="759",
        committed_at=datetime.fromtimestamp(1795411501.051575, UTC),
        operation="INSERT",
        cause="",
    )
    assert (second.lsn, second.committed_at) == ("1/1", None)
    assert second.cause == "java.lang.NumberFormatException"
    problem = capture_problem(settings)
    assert problem == "left out 2 changes that it cannot read, the last at 1/1"

    assert answer(settings, by="me", reason="rows were written again") == 2
    assert unanswered(settings) == []
    assert capture_problem(settings) is None
    with skipped_file(settings).open("a") as file:
        file.write(LINES[0])
    assert unanswered(settings) == [first]
    assert len(skipped(settings)) == 3


def test_an_answer_that_was_cut_off_is_no_answer(settings: Settings) -> None:
    skipped_file(settings).write_text(LINES[0])
    assert answer(settings, by="me", reason="rows were written again") == 1
    answers = skipped_file(settings).with_suffix(".answered")
    with answers.open("a") as file:
        file.write('{"at": "2026-11-2')
    with skipped_file(settings).open("a") as file:
        file.write(LINES[2])
    assert len(unanswered(settings)) == 1
    assert answer(settings, by="me", reason="rows were written again") == 1
    assert unanswered(settings) == []


def test_an_answer_ends_at_the_change_that_it_names(settings: Settings) -> None:
    """What came after the list was shown still waits for an answer."""
    skipped_file(settings).write_text("".join(LINES))
    first, second = unanswered(settings)
    assert answer(settings, by="me", reason="row 17 was written again", through=first) == 1
    assert unanswered(settings) == [second]
    assert answer(settings, by="me", reason="row 18 was written again", through=second) == 1
    # Somebody who still looks at the older list takes nothing back.
    assert answer(settings, by="you", reason="row 17 was written again", through=first) == 0
    assert unanswered(settings) == []


@pytest.mark.parametrize("by_count", [False, True])
def test_the_log_began_again(settings: Settings, by_count: bool) -> None:
    """The answers stayed while the log was deleted: new changes are not among the answered."""
    skipped_file(settings).write_text("".join(LINES))
    assert answer(settings, by="me", reason="rows were written again") == 2
    if by_count:
        answers = skipped_file(settings).with_suffix(".answered")
        answers.write_text('{"at": "2026-11-23T05:30:00+00:00", "by": "me", "changes": 2}\n')
        assert unanswered(settings) == []
    skipped_file(settings).write_text(LINES[0].replace("05:25", "06:25"))
    assert len(unanswered(settings)) == 1
    assert answer(settings, by="me", reason="rows were written again") == 1
    assert unanswered(settings) == []


def test_a_line_that_was_cut_off_is_a_change(settings: Settings) -> None:
    """By a full disk; the next one begins in the same line."""
    for length in (20, 90, 150, 250):
        skipped_file(settings).write_text(LINES[0][:length] + LINES[2])
        found = skipped(settings)
        assert [one.lsn for one in found][-1] == "1/1"
        assert len(found) == (1 if length == 20 else 2)
    skipped_file(settings).write_text(LINES[0][:150])
    [change] = unanswered(settings)
    assert change.at == datetime(2026, 11, 23, 5, 25, 54, 519000, tzinfo=UTC)


def test_a_stopped_task_left_out_nothing(settings: Settings) -> None:
    """It was stopped while its queue was full; later it reads the change again."""
    stopped = LINES[0].replace("}\n", "} java.lang.InterruptedException\n")
    skipped_file(settings).write_text(stopped + LINES[2] + stopped)
    [change] = unanswered(settings)
    assert change.lsn == "1/1"
    assert answer(settings, by="me", reason="rows were written again") == 1
    assert capture_problem(settings) is None


def test_the_worker_notes_what_its_connectors_leave_out(settings: Settings) -> None:
    (properties,) = worker_files(settings)
    prepare_worker(settings, 1, properties=properties)
    logging = properties.with_name("connect-log4j2.properties").read_text()
    assert f"appender.skipped.fileName = {skipped_file(settings)}\n" in logging
    time, cause = "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}{UTC}", r"%replace{%rEx{1}}{(?s)[:\\s].*}{}"
    assert f"{time} %m {cause}%n\n" in logging
    # A worker that does not answer is no failed connector.
    assert capture_problem(settings) is None


def test_no_value_is_lost_without_a_note(settings: Settings, tmp_path: Path) -> None:
    """A change is left out only where that is noted, and no value becomes NULL."""
    converting, processing = (f"event.{one}.failure.handling.mode" for one in MODES)
    config = connector_config(settings, [])
    assert (config[converting], config[processing]) == ("fail", "warn")
    elsewhere = load_settings(tmp_path, kafka_connect={"url": "http://connect.internal:8083"})
    config = connector_config(elsewhere, [])
    assert (config[converting], config[processing]) == ("fail", "fail")


MODES = ("converting", "processing")

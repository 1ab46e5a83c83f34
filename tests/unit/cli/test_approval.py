"""A question at the terminal: its answer, and that it is no part of the output."""

from __future__ import annotations

import io
import sys

import pytest
import typer

from spark_jobs.cli.approval import confirmed
from spark_jobs.deploy.errors import NotConfirmedError

EFFECTS = ("stop silver.orders", "build gold.spend")


class Terminal(io.StringIO):
    """Somebody who types these lines."""

    def isatty(self) -> bool:
        return True


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(text))


def test_a_question_is_no_part_of_the_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output may be JSON in a file, where nobody would see the question."""
    answer(monkeypatch, "y\n")
    confirmed(EFFECTS, yes=False)
    shown = capsys.readouterr()
    assert shown.out.strip() == ""
    assert "stop silver.orders; build gold.spend?" in shown.err
    answer(monkeypatch, "perhaps\ny\n")
    confirmed(EFFECTS, yes=False, question="Apply this plan?")
    shown = capsys.readouterr()
    assert shown.out.strip() == ""
    assert "Apply this plan?" in shown.err


def test_no_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, "n\n")
    with pytest.raises(typer.Exit) as left:
        confirmed(EFFECTS, yes=False)
    assert left.value.exit_code == 1
    shown = capsys.readouterr()
    assert shown.out.strip() == ""
    assert shown.err.endswith("Nothing was changed.\n")


def test_a_terminal_that_ends_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, "")
    with pytest.raises(typer.Abort):
        confirmed(EFFECTS, yes=False)


def test_nobody_is_asked_without_need_or_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    confirmed((), yes=False)
    confirmed(EFFECTS, yes=True)
    with pytest.raises(NotConfirmedError) as refused:
        confirmed(EFFECTS, yes=False)
    assert refused.value.steps == EFFECTS

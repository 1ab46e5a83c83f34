"""What is said when a task fails for good, and by whom."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowFailException

from spark_jobs.gold.base.errors import QueryFailedError
from spark_jobs.orchestration import alerts
from spark_jobs.orchestration.alerts import AlertNotifier, alert_of
from spark_jobs.orchestration.errors import NotifierUnusableError
from spark_jobs.orchestration.resolved import ResolvedNotifier
from spark_jobs.sections import AlertSettings
from spark_jobs.settings import REPOSITORY, Settings, load_settings
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage.compiled import compile_settings
from spark_jobs.storage.errors import SparkUnreachableError

pytestmark = pytest.mark.filterwarnings("default")

HERE = f"{__name__}."


class Writes(BaseNotifier):
    """A notifier with a template, as those of Airflow's providers are."""

    template_fields = ("text",)

    def __init__(self, file: str, text: str) -> None:
        super().__init__()
        self.file, self.text = file, text

    def notify(self, context: Any) -> None:
        with Path(self.file).open("a") as file:
            file.write(f"{self.text}\n")


class Breaks(BaseNotifier):
    """A notifier whose system is down."""

    def notify(self, context: Any) -> None:
        raise ConnectionError("nobody answers")


def context(exception: object = None, **changed: Any) -> dict[str, Any]:
    ti = SimpleNamespace(dag_id="gold__spend", task_id="stage", run_id="r1", log_url="http://log")
    return {"ti": ti, "dag": None, "exception": exception, **changed}


def alert(exception: object) -> alerts.Alert:
    settings = load_settings().model_copy(update={"environment": "test"})
    return alert_of(context(exception), table="gold.spend", runbook="b", settings=settings)


def held() -> None:
    try:
        raise SparkUnreachableError("sc://host", "refused", seconds=1)
    except SparkUnreachableError as error:
        raise AirflowFailException(str(error)) from None


def test_an_alert_contains_condition_and_hint_of_our_errors() -> None:
    error = SparkUnreachableError("sc://host", "refused", seconds=1)
    found = alert(error)
    assert (found.condition, found.message) == ("SPARK_UNREACHABLE", error.primary)
    assert found.todo == error.hint
    assert found.subject == "[test] gold.spend: SPARK_UNREACHABLE"
    book = "Runbook: docs/runbooks/gold-refresh.md"
    for part in (found.message, found.todo, book, "gold__spend", "http://log"):
        assert part in found.text


def test_it_is_found_behind_the_word_of_airflow_that_ends_retries() -> None:
    with pytest.raises(AirflowFailException) as raised:
        held()
    assert alert(raised.value).condition == "SPARK_UNREACHABLE"


@pytest.mark.parametrize(
    ("exception", "condition", "message"),
    [
        (AirflowFailException("rows differ"), "TASK_FAILED", "rows differ"),
        (ZeroDivisionError("by zero"), "ZeroDivisionError", "by zero"),
        (None, "TASK_LOST", "the task's process ended without a message"),
    ],
)
def test_other_failures(exception: object, condition: str, message: str) -> None:
    found = alert(exception)
    assert (found.condition, found.message) == (condition, message)
    assert found.runbook == "docs/runbooks/b.md"
    assert found.todo


@pytest.mark.parametrize("pii", ["true", "false"])
def test_an_alert_about_a_view_over_personal_data_shows_no_value(tmp_path: Path, pii: str) -> None:
    source = "format: csv\npath: seeds/p.csv\nkeys: [k]\ncolumns:\n  k: BIGINT\n"
    source += f"  mail: {{type: STRING, pii: {pii}}}\n"
    view = "/* gold\ndescription: d\nowner: o\nrefresh: bulk\n*/\nSELECT p.k FROM bronze.p AS p\n"
    files = {"sources/p.yml": source, "sql/gold/spend.sql": view, "seeds/p.csv": "k,mail\n1,a\n"}
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    settings = load_settings(tmp_path, state_dir=tmp_path / "state")
    compile_settings(settings)
    cause = "[CAST_INVALID_INPUT] The value 'ann@example.org' of ..."
    text = f"stage: {QueryFailedError('spend', cause)}"
    for error in (AirflowFailException(text), ValueError(cause)):
        found = alert_of(context(error), table="gold.spend", runbook="b", settings=settings)
        assert ("ann@" in found.message) is (pii == "false")
    assert (
        "CAST_INVALID_INPUT"
        in alert_of(
            context(AirflowFailException(text)), table="gold.spend", runbook="b", settings=settings
        ).message
    )


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("TIDEMARK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    return load_settings()


def with_notifiers(settings: Settings, *notifiers: dict[str, Any], **changed: Any) -> Settings:
    entry = {**changed, **({"notifiers": notifiers} if notifiers else {})}
    return settings.model_copy(update={"alerts": AlertSettings.model_validate(entry)})


def test_by_default_each_alert_is_a_line_of_a_file_that_only_its_owner_reads(settings) -> None:
    notifier = AlertNotifier(settings, runbook="gold-refresh", table="gold.spend")
    notifier(context(ZeroDivisionError("{{ 7 * 7 }}\n<b>")))
    notifier(context())
    file = settings.state / alerts.FILE
    first, second = map(json.loads, file.read_text().splitlines())
    assert first["message"] == "{{ 7 * 7 }}\n<b>"
    assert first["runbook"] == "docs/runbooks/gold-refresh.md"
    assert (first["table"], first["task_id"]) == ("gold.spend", "stage")
    assert second["condition"] == "TASK_LOST"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def lines(settings: Settings) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (settings.state / alerts.FILE).read_text().splitlines()]


def test_a_repeated_failure_is_sent_once_and_its_resolution_too(settings) -> None:
    notifier = AlertNotifier(settings, runbook="gold-refresh", table="gold.spend")
    ended = ResolvedNotifier(settings)
    ended(context())
    for version in (3, 4, 5):
        notifier(context(ValueError(f"no version {version}")))
    (opened,) = lines(settings)
    assert (opened["status"], opened["times"]) == ("open", 1)
    ended(context())
    _, resolved = lines(settings)
    assert (resolved["status"], resolved["times"]) == ("resolved", 3)
    assert resolved["since"] == opened["at"]
    assert (resolved["table"], resolved["condition"]) == ("gold.spend", "ValueError")
    ended(context())
    notifier(context(ValueError("no version 6")))
    assert [one["status"] for one in lines(settings)] == ["open", "resolved", "open"]


def test_a_task_does_not_resolve_the_incident_of_another(settings) -> None:
    AlertNotifier(settings, runbook="stream-silent")(context())
    other = SimpleNamespace(dag_id="gold__spend", task_id="page", run_id="r1", log_url="")
    ResolvedNotifier(settings)(context(ti=other))
    assert [one["status"] for one in lines(settings)] == ["open"]


@pytest.mark.parametrize(
    ("status", "told"),
    [("published", ["open", "resolved"]), ("blocked", ["open"]), ("failed", ["open"])],
)
def test_a_view_s_incident_ends_when_its_newest_attempt_is_published(
    settings, status, told
) -> None:
    AlertNotifier(settings, runbook="gold-refresh", table="gold.spend")(context())
    with ControlStore.open(settings.control_url) as store:
        attempts = [("a1", AttemptStatus(status)), ("a2", AttemptStatus.SKIPPED)]
        for name, as_now in attempts:
            now = utc_now()
            row = RefreshAttempt(
                attempt_id=name, view="spend", tick=name, epoch=1, started_at=now, updated_at=now
            )
            store.create_attempt(row)
            store.update_attempt(name, status=as_now)
    ended = ResolvedNotifier(settings, view="spend")
    plan = SimpleNamespace(dag_id="gold__spend", task_id="plan", run_id="r2", log_url="")
    ended(context(ti=plan))
    assert [one["status"] for one in lines(settings)] == told


def test_failures_of_manual_runs_are_sent_each_time(settings) -> None:
    notifier = AlertNotifier(settings, runbook="gold-is-wrong", lasts=False)
    for _ in range(2):
        notifier(context(ZeroDivisionError("by zero")))
    assert len(lines(settings)) == 2


def test_an_alert_is_sent_if_no_incident_can_be_recorded(settings) -> None:
    elsewhere = settings.model_copy(update={"control_db": "postgresql://nobody@127.0.0.1:1/none"})
    for _ in range(2):
        AlertNotifier(elsewhere, runbook="gold-refresh")(context())
    assert len(lines(settings)) == 2


def test_a_long_file_is_put_aside(settings, monkeypatch) -> None:
    monkeypatch.setattr(alerts, "MOST_BYTES", 10)
    notifier = AlertNotifier(settings, runbook="gold-refresh", lasts=False)
    for _ in range(3):
        notifier(context())
    kept = sorted(one.name for one in settings.state.iterdir())
    assert kept == ["alerts.jsonl", "alerts.jsonl.1"]
    assert len((settings.state / alerts.FILE).read_text().splitlines()) == 1


def test_each_notifier_speaks_with_the_alert_in_its_templates(settings, tmp_path) -> None:
    said = {"file": str(tmp_path / "said"), "text": "{{ alert.condition }} {{ alert.runbook }}"}
    writes = {"notifier": f"{HERE}Writes", "arguments": said}
    several = with_notifiers(
        settings, {"notifier": f"{HERE}Breaks"}, writes, runbooks="https://wiki/books/"
    )
    notifier = AlertNotifier(several, runbook="gold-refresh")
    notifier(context(ZeroDivisionError("{{ 7 * 7 }}")))
    notifier(context())
    assert (tmp_path / "said").read_text().splitlines() == [
        "ZeroDivisionError https://wiki/books/gold-refresh.md",
        "TASK_LOST https://wiki/books/gold-refresh.md",
    ]


@pytest.mark.parametrize(
    "entry",
    [
        {"notifier": "no_such_module.Notifier"},
        {"notifier": f"{HERE}NoSuchClass"},
        {"notifier": "Notifier"},
        {"notifier": "pathlib.Path"},
        {"notifier": f"{HERE}Breaks", "arguments": {"colour": "red"}},
    ],
)
def test_a_notifier_that_cannot_be_made_is_refused_when_dags_are_made(settings, entry) -> None:
    with pytest.raises(NotifierUnusableError) as raised:
        AlertNotifier(with_notifiers(settings, entry), runbook="gold-refresh")
    assert raised.value.notifier == entry["notifier"]


def test_the_settings_that_the_papers_show_can_be_used(settings) -> None:
    text = Path(REPOSITORY, "docs/watching.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    chosen = AlertSettings.model_validate(shown["alerts"])
    assert len(chosen.notifiers) == 3
    AlertNotifier(settings.model_copy(update={"alerts": chosen}), runbook="gold-refresh")

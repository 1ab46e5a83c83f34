"""The page: what it says, where its boxes stand, and that nothing on it is run or fetched."""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from spark_jobs.cli.main import app
from spark_jobs.graph.compile import compile_project
from spark_jobs.orchestration.page_age import SCRIPT, marked
from spark_jobs.serving.page.facts import (
    Attention,
    Card,
    IncidentLine,
    Link,
    PageFacts,
    Section,
    Tone,
)
from spark_jobs.serving.page.picture import BOX_HEIGHT, BOX_WIDTH, picture
from spark_jobs.serving.page.rendering import rendered, write_page
from spark_jobs.serving.page.trends import trends
from spark_jobs.serving.report.quality import first_change
from spark_jobs.state.attempts import AttemptStatus, RefreshAttempt
from spark_jobs.state.days import Published
from spark_jobs.state.incidents import Incident
from spark_jobs.state.pinned_views import PinnedView
from spark_jobs.state.progress import StreamProgress, StreamState, sink_query
from spark_jobs.state.store import ControlStore
from spark_jobs.state.types import utc_now
from spark_jobs.storage import log
from spark_jobs.storage.lake import Lake, TableLocations
from spark_jobs.terminal.crash import foreseen
from tests.golden.declaration_cases import RIGHT, write_project

NOW = datetime(2024, 5, 2, 12, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</text></a></svg><script>alert(1)</script>",
    "</td></tr></table><iframe src=//evil.example></iframe>",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    '" style="background:url(//evil.example)',
    "javascript:alert(1)",
    '<a href="javascript:alert(1)">look</a>',
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<base href=//evil.example/>",
    "<link rel=stylesheet href=//evil.example>",
    "<!-- -->",
    "--><script>alert(1)</script><!--",
    "<![CDATA[<script>alert(1)</script>]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)",
    "{{ 7 * 7 }}",
    "{% for x in ().__class__.__mro__ %}{% endfor %}",
    "${7*7}",
    "<details open ontoggle=alert(1)>",
    "<ScRiPt/x>alert(1)</sCrIpT>",
    "\N{FULLWIDTH LESS-THAN SIGN}script\N{FULLWIDTH GREATER-THAN SIGN}",
)


class Elements(HTMLParser):
    """The tags with the names of their attributes, the ids and links, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.values: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))
        self.values += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, name: str) -> list[str]:
        return [value for each, value in self.values if each == name]


def card(name: str, column: int, said: str = "said", **changed: Any) -> Card:
    made = Card(
        name=name,
        column=column,
        description=said,
        state="running",
        tone=Tone.GOOD,
        cells=(said, said),
        runbook="stream-silent",
    )
    return replace(made, **changed)


def facts(said: str = "said") -> PageFacts:
    gold = card("gold.spend", 2, said, state=said, note=said, tone=Tone.BAD)
    dag = Link(said, "../dags/gold__spend", in_airflow=True)
    incident = IncidentLine(
        about=said,
        state="open",
        tone=Tone.BAD,
        condition=said,
        message=said,
        began=said,
        lasted=said,
        times=2,
        links=(dag, Link(said)),
    )
    return PageFacts(
        project=said,
        at=NOW,
        columns=("sources", "silver", "gold"),
        sections=(
            Section("Gold views", ("one", "two"), (gold,)),
            Section("Silver tables", ("one", "two"), (card("silver.orders", 1, said),)),
            Section("Sources", ("one", "two"), (card("bronze.orders", 0, said),)),
        ),
        edges=(("bronze.orders", "silver.orders"), ("silver.orders", "gold.spend")),
        attention=(Attention(said, Link(said)),),
        incidents=(incident,),
    )


def test_only_the_script_that_shows_the_age_may_run() -> None:
    text = rendered(facts())
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(one for one in Elements(text).all("content") if "default-src" in one)
    assert policy.endswith(f"script-src 'sha256-{digest}'")


@pytest.mark.parametrize(("minutes", "old"), [(0, False), (10, False), (10.1, True), (75, True)])
def test_the_server_marks_a_page_that_is_old(minutes: float, *, old: bool) -> None:
    text = marked(rendered(facts()), now=NOW + timedelta(minutes=minutes))
    assert f'<body class="{"served old" if old else "served"}" ' in text
    assert ('class="sheet attention" hidden>' in text) is not old
    assert (f'<b id="age">{int(minutes)} min</b>' in text) is old


def test_a_name_cannot_pretend_to_be_the_time_of_the_page() -> None:
    hostile = '<body data-at="2999-01-01T00:00:00+00:00" data-old-after="600">'
    text = marked(rendered(facts(hostile)), now=NOW + timedelta(hours=1))
    assert '<b id="age">60 min</b>' in text


@pytest.mark.skipif(shutil.which("node") is None, reason="nothing here runs a script")
@pytest.mark.parametrize(("minutes", "old"), [(9, False), (11, True)])
def test_the_script_shows_the_same(minutes: float, *, old: bool) -> None:
    at = (NOW - timedelta(minutes=minutes)).isoformat()
    page = f"""
        const age = {{textContent: ""}}, notice = {{hidden: true}};
        globalThis.document = {{
          body: {{dataset: {{at: "{at}", oldAfter: "600"}}, className: ""}},
          getElementById: (name) => ({{old: notice, age}})[name],
        }};
        globalThis.setInterval = () => 0;
        Date.now = () => {int(NOW.timestamp() * 1000)};
        {SCRIPT}
        console.log(JSON.stringify([document.body.className, notice.hidden, age.textContent]));
    """
    done = subprocess.run(["node", "-e", page], capture_output=True, text=True, check=True)
    expected = ["old", False, f"{minutes} min"] if old else ["", True, ""]
    assert json.loads(done.stdout) == expected


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_text_and_changes_no_element(text: str) -> None:
    plain, hostile = Elements(rendered(facts())), Elements(rendered(facts(text)))
    assert hostile.tags == plain.tags
    assert any(text in words for words in hostile.words)


def test_nothing_is_fetched_and_no_element_runs_anything() -> None:
    text = rendered(facts())
    found = Elements(text)
    assert not {tag for tag, *_ in found.tags} & {"link", "img", "iframe", "object"}
    assert not [name for name, _ in found.values if name.startswith("on") or name == "src"]
    assert all(link.startswith(("#", "../dags/")) for link in found.all("href"))
    assert not re.search(r"@import|url\(", text)


def test_each_box_leads_to_the_row_of_its_table() -> None:
    found = Elements(rendered(facts()))
    # The notice of its age leads nowhere.
    ids = [one for one in found.all("id") if one not in {"old", "age"}]
    assert sorted(ids) == ["bronze.orders", "gold.spend", "silver.orders"]
    inside = [link for link in found.all("href") if link.startswith("#")]
    assert sorted(inside) == sorted(f"#{name}" for name in ids)


def test_boxes_do_not_overlap_and_each_line_goes_from_left_to_right() -> None:
    sizes = (3, 1, 12, 5)
    cards = [[card(f"gold.c{at}_{row}", at) for row in range(n)] for at, n in enumerate(sizes)]
    edges = tuple(
        (left.name, right.name)
        for at, column in enumerate(cards)
        for later in cards[at + 1 :]
        for left, right in zip(column, later, strict=False)
    )
    sections = (Section("all", (), tuple(one for column in cards for one in column)),)
    made = picture(replace(facts(), sections=sections, edges=edges, columns=("a", "b", "c", "d")))
    assert len(made.lines) == len(edges)
    for x in {box.x for box in made.boxes}:
        column = sorted(box.y for box in made.boxes if box.x == x)
        assert all(above + BOX_HEIGHT < below for above, below in pairwise(column))
    assert all(0 <= box.x <= made.width - BOX_WIDTH for box in made.boxes)
    assert all(0 <= box.y <= made.height - BOX_HEIGHT for box in made.boxes)
    for line in made.lines:
        numbers = [int(one) for one in re.findall(r"\d+", line)]
        assert numbers[0] < numbers[-2]
        # Where it passes other columns, it is between their boxes.
        for x, y in re.findall(r"(\d+),(\d+)H", line):
            column = [box.y for box in made.boxes if box.x == int(x)]
            assert column
            assert not any(top <= int(y) <= top + BOX_HEIGHT for top in column)
    assert sum(line.count("H") for line in made.lines) == 3 * 1 + 3 * 2 + 1 * 1


def test_a_column_follows_what_it_reads() -> None:
    silver = tuple(card(f"silver.{name}", 0) for name in "abc")
    gold = tuple(card(f"gold.{name}", 1) for name in "xyz")
    edges = (("silver.a", "gold.z"), ("silver.b", "gold.y"), ("silver.c", "gold.x"))
    sections = (Section("all", (), silver + gold),)
    made = picture(replace(facts(), sections=sections, edges=edges, columns=("silver", "gold")))
    heights = {box.card.name: box.y for box in made.boxes}
    assert all(heights[start] == heights[end] for start, end in edges)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    sinks = 'sinks:\n  - redis: {prefix: "spend:"}\n'
    spend = RIGHT["sql/gold/spend.sql"].replace("*/", f"freshness: 30 minutes\n{sinks}*/")
    source = RIGHT["sources/orders.yml"] + f"description: {json.dumps(HOSTILE[0])}\n"
    changed = {"sql/gold/spend.sql": spend, "sources/orders.yml": source}
    return write_project(tmp_path / "project", changed)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    (tmp_path / "state").mkdir()
    with ControlStore.open(f"sqlite:///{tmp_path}/state/control.db") as opened:
        yield opened


def page(project: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["--project", str(project), "page", *words])
    assert done.exit_code == 0, done.output
    [file] = re.findall(r"Wrote (.+)\.\n", done.output)
    assert stat.S_IMODE(Path(file).stat().st_mode) == 0o600
    return Path(file).read_text(encoding="utf-8")


def row(text: str, name: str) -> str:
    """The words of a table's row."""
    [found] = re.findall(rf'<tr id="{re.escape(name)}">(.*?)</tr>', text, re.DOTALL)
    return " ".join(" ".join(Elements(found).words).split())


def test_the_page_of_a_project_that_never_reported(project: Path, tmp_path: Path) -> None:
    text = page(project)
    assert (tmp_path / "state/status.html").read_text(encoding="utf-8") == text
    assert row(text, "gold.spend").startswith("spend Spend per user. gold__spend unpublished")
    assert "target 30 min" in row(text, "gold.spend")
    assert "never reported" in row(text, "silver.orders")
    assert HOSTILE[0] in row(text, "bronze.orders")
    assert HOSTILE[0] not in text
    gone = "streaming application: none of its 5 queries ever reported"
    assert f"{gone}; see <span>docs/runbooks/stream-silent.md</span>" in text


def test_a_mistyped_directory_is_not_made(project: Path, tmp_path: Path) -> None:
    """As with ``query --output`` and ``quarantine show --to``."""
    for name in ("nope/page.html", "nope/deeper/page.html", "project", "state/x" * 200):
        words = ("page", "--to", str(tmp_path / name))
        done = CliRunner().invoke(app, ["--project", str(project), *words])
        assert done.exit_code == 2, done.output
    assert not (tmp_path / "nope").exists()


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    """As root, ``--to /dev/null`` took the device away from every program of the machine."""
    pipe, link, aim = tmp_path / "pipe", tmp_path / "link", tmp_path / "page.html"
    os.mkfifo(pipe)
    link.symlink_to(aim)
    # The pipe has a reader, so that writing does not wait for one.
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for file in (pipe, link, link, aim):
            write_page("<p>\udcff</p>", file)
        assert os.read(reader, 100) == b"<p>?</p>"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert link.is_symlink()
    assert aim.read_bytes() == b"<p>?</p>"
    assert stat.S_IMODE(aim.stat().st_mode) == 0o600
    assert {one.name for one in tmp_path.iterdir()} == {"pipe", "link", "page.html"}


@pytest.mark.parametrize(
    ("number", "condition"), [(errno.ENOSPC, "DISK_FULL"), (errno.EACCES, "PERMISSION_DENIED")]
)
def test_a_page_that_cannot_be_written_is_no_wrong_command_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, number: int, condition: str
) -> None:
    """Airflow writes it every few minutes, and reports the condition."""

    mkstemp = tempfile.mkstemp

    def refused(**options: Any) -> tuple[int, str]:
        if options["prefix"].startswith(".status.html"):
            raise OSError(number, os.strerror(number), "status.html")
        return mkstemp(**options)

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    done = CliRunner().invoke(app, ["--project", str(project), "page"])
    assert done.exception is not None
    problem = foreseen(done.exception)
    assert problem is not None, done.output
    assert problem.condition == condition


def test_a_stopped_application_is_one_line_at_the_top(project: Path, store: ControlStore) -> None:
    long_ago = utc_now() - timedelta(minutes=5)
    names = ("bronze.orders", "bronze.clicks", "silver.orders", "silver.clicks")
    for name in (*names, sink_query("spend_redis")):
        store.record_heartbeat(name, at=long_ago, state=StreamState.RUNNING)
    top = page(project).partition('class="sheet attention')[2].partition("</ul>")[0]
    assert "streaming application: down, none of its 5 queries was seen since 5 min" in top
    assert not [name for name in names if f"{name}: " in top]


def test_the_page_shows_streams_sinks_and_attempts(
    project: Path, store: ControlStore, tmp_path: Path
) -> None:
    now = utc_now()
    first = StreamProgress(query="", batch_id=3, records=1, at=now, heartbeat_at=now)
    for name in ("bronze.orders", "bronze.clicks", "silver.clicks"):
        store.record_progress(replace(first, query=name, lag_records=1234))
    error = "connection refused: <b>password</b>"
    waiting = {"state": StreamState.WAITING, "error": error, "at": now - timedelta(minutes=9)}
    store.record_progress(replace(first, query=sink_query("spend_redis"), **waiting))
    attempt = RefreshAttempt(
        attempt_id="a1",
        view="spend",
        tick="t1",
        status=AttemptStatus.BLOCKED,
        decision="full",
        reason="first build & more",
        epoch=1,
        verdict={"outcome": "blocked", "expectations": 5, "failed": 2},
        started_at=now,
        updated_at=now,
    )
    store.create_attempt(attempt)
    rejected = pa.table({"reason": ["TOO_LARGE", "TOO_LARGE", "NOT_JSON"], "arrived_at": [now] * 3})
    write_deltalake(str(tmp_path / "state/lake/_quarantine/clicks"), rejected)

    (tmp_path / "elsewhere").mkdir()
    text = page(project, "--to", str(tmp_path / "elsewhere/page.html"))

    assert "1,234 records" in row(text, "bronze.orders")
    clicks = row(text, "silver.clicks")
    assert clicks.startswith("clicks Clicks. running 2 TOO_LARGE, 1 NOT_JSON 1,234 records")
    assert "running · 3 in quarantine" in text
    assert error in row(text, "sink.spend_redis")
    assert "blocked 3/5" in row(text, "gold.spend")
    assert "1 attempt, 1 blocked blocked; full: first build & more" in row(text, "gold.spend")
    assert "<li>gold.spend: blocked; see <span>docs/runbooks/gold-refresh.md</span></li>" in text
    assert "<li>sink.spend_redis: waiting: connection refused: &lt;b&gt;" in text


def test_an_open_incident_is_in_the_headline_of_a_page_that_is_well_otherwise() -> None:
    well = replace(facts("x"), attention=())
    text = rendered(well)
    assert "<strong>1 open incident: x</strong>" in text
    assert 'class="sheet attention good"' not in text
    ended = replace(well.incidents[0], state="resolved")
    assert 'class="sheet attention good"' in rendered(replace(well, incidents=(ended,)))


def test_an_incident_of_this_moment_has_lasted_for_no_time(
    project: Path, store: ControlStore
) -> None:
    soon = utc_now() + timedelta(minutes=1)
    incident = Incident(
        incident_id="i1",
        dag_id="ops__stream_watch",
        task_id="watch",
        fault="f1",
        table=None,
        condition="TASK_FAILED",
        message="a stream is silent",
        runbook="docs/runbooks/stream-silent.md",
        opened_at=soon,
        last_at=soon,
        times=1,
        told_at=soon,
    )
    store.open_incident(incident, again_after=timedelta(days=1))
    incidents = page(project).partition("<h2>Incidents</h2>")[2].partition("</table>")[0]
    assert " 0 s 1 TASK_FAILED" in " ".join(" ".join(Elements(incidents).words).split())


def test_incidents_lead_to_their_dag_its_runs_and_the_runbook(
    project: Path, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = utc_now() - timedelta(hours=3, seconds=5)
    blocked = Incident(
        incident_id="i1",
        dag_id="gold__spend",
        task_id="audit",
        fault="f1",
        table="gold.spend",
        condition="GATE_BLOCKED",
        message=HOSTILE[0],
        runbook="https://wiki.example.com/gold-refresh.md",
        opened_at=began,
        last_at=began,
        times=1,
        told_at=began,
    )
    silent = replace(blocked, incident_id="i2", dag_id="ops__stream_watch", task_id="watch")
    silent = replace(silent, table=None, condition="TASK_FAILED", runbook="docs/runbooks/a.md")
    for one in (blocked, silent):
        store.open_incident(one, again_after=timedelta(days=1))
    store.resolve_incidents("ops__stream_watch", now=began + timedelta(minutes=7))

    monkeypatch.setenv("TIDEMARK_ALERTS__RUNBOOKS", "https://wiki.example.com")
    text = page(project)
    incidents = text.partition("<h2>Incidents</h2>")[2].partition("</table>")[0]
    first, second = re.findall(r"<tr>\n(.*?)</tr>", incidents, re.DOTALL)
    words = " ".join(" ".join(Elements(first).words).split())
    assert words.startswith("gold.spend gold__spend runs and logs https://wiki.example.com/")
    assert " open " in words
    assert f"3 h 1 GATE_BLOCKED: {HOSTILE[0]}" in words
    to_view = ["../dags/gold__spend", "../dags/gold__spend/tasks/audit", blocked.runbook]
    assert Elements(first).all("href") == to_view
    ended = " ".join(" ".join(Elements(second).words).split())
    assert ended.startswith("ops__stream_watch ops__stream_watch runs and logs docs/runbooks/a.md")
    assert " resolved " in ended
    assert " 7 min 1 TASK_FAILED" in ended
    # A copy elsewhere has no Airflow around it.
    hidden = Elements(text).all("class").count("airflow")
    assert hidden == len(re.findall(r'href="\.\./', text)) == 5
    assert '<a href="../dags/gold__spend" class="airflow">gold__spend</a>' in text
    assert '<a href="https://wiki.example.com/stream-silent.md">' in text


def test_a_view_that_waits_for_a_person_says_so(project: Path, store: ControlStore) -> None:
    now = utc_now()
    attempt = RefreshAttempt(
        attempt_id="a1",
        view="spend",
        tick="t1",
        status=AttemptStatus.SKIPPED,
        decision="skip",
        reason_code="WAITS_FOR_PERSON",
        reason="it would read 9,000,000 rows",
        epoch=1,
        started_at=now,
        updated_at=now,
    )
    store.create_attempt(attempt)
    text = page(project)
    assert "Spend per user. gold__spend waits " in row(text, "gold.spend")
    assert " 1 attempt, 1 skipped " in row(text, "gold.spend")
    waits = "<li>gold.spend: it would read 9,000,000 rows; see <span>docs/runbooks/"
    assert f"{waits}refresh-waits.md</span></li>" in text


def test_a_view_that_was_rolled_back_has_its_own_runbook(
    project: Path, store: ControlStore
) -> None:
    why = {"who": "ann", "reason": "negative", "replay_id": "rollback-1"}
    store.pin_view(PinnedView(view="spend", version=3, **why))
    text = page(project)
    rolled_back = (
        "<li>gold.spend: rolled back; see <span>docs/runbooks/gold-is-wrong.md</span></li>"
    )
    assert rolled_back in text


def test_a_table_that_does_not_read_is_on_the_page_too(project: Path, tmp_path: Path) -> None:
    log = tmp_path / "state/lake/gold/spend/_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text("no json\n")
    text = page(project)
    assert "unreadable" in row(text, "gold.spend")
    assert "unreadable" in row(text, "sink.spend_redis")
    assert "<li>gold.spend: unreadable; see <span>docs/runbooks/gold-refresh.md</span></li>" in text


def publication(day: datetime, number: int = 0, **changed: Any) -> RefreshAttempt:
    attempt = {
        "attempt_id": f"{day:%m%d}-{number}",
        "view": "spend",
        "tick": f"{day:%m%d}-{number}",
        "status": AttemptStatus.PUBLISHED,
        "decision": "full",
        "reason": HOSTILE[0],
        "epoch": 1,
        "actual": {"rows": 1000 + number, "seconds": {"plan": 0.5, "stage": float(number)}},
        "started_at": day,
        "updated_at": day,
        "published_version": number,
    }
    return RefreshAttempt(**(attempt | changed))


def more(text: str) -> str:
    """What is below the row of the gold view."""
    [found] = re.findall(r'<tr class="more">(.*?)</details>', text, re.DOTALL)
    return found


def test_thirty_days_are_bars_and_the_newest_attempts_a_table(
    project: Path, store: ControlStore
) -> None:
    now = utc_now()
    for number in range(40):
        store.create_attempt(publication(now - timedelta(days=39 - number), number))
    failed = publication(now, 77, status=AttemptStatus.FAILED, actual=None, published_version=None)
    store.create_attempt(failed)
    store.create_attempt(publication(now, 78, status=AttemptStatus.SKIPPED))
    found = more(page(project))
    took, rows = re.findall(r"<figure>(.*?)</figure>", found, re.DOTALL)
    assert "<b>39 s</b>" in took
    assert "<b>1,039</b>" in rows
    assert took.count("<rect ") == rows.count("<rect ") == 30
    assert f"<title>{now:%Y-%m-%d}: 1,039</title>" in rows
    today = re.findall(r'x="(\d+)" y="0" width="4" height="24"', took)
    assert today == ["145"]
    lines = re.findall(r"<tr><td.*?</tr>", found)
    assert len(lines) == 10
    assert "failed" in lines[0]
    assert "skipped" not in found
    assert HOSTILE[0] not in found


def test_a_change_that_waited_too_long_is_a_red_bar(
    project: Path, store: ControlStore, tmp_path: Path
) -> None:
    orders = str(tmp_path / "state/lake/silver/orders")
    for number in range(3):
        write_deltalake(orders, pa.table({"id": [number]}), mode="append")
    first, table = log.committed_at(orders, 1), log.table_version(orders)
    assert first is not None
    assert table is not None
    late = first + timedelta(minutes=31)
    for version, end in ((0, first), (2, late)):
        vector = {"silver.orders": {"id": table.table_id, "version": version}}
        store.create_attempt(publication(end, version, vector=vector))
    locations = TableLocations(Lake(str(tmp_path / "state/lake")), compile_project(project))
    made = trends(
        store.publications(start=first, end=late + timedelta(seconds=1)),
        now=late,
        target=timedelta(minutes=30),
        first_change=lambda before, after: first_change(locations, before, after),
    )
    waited = next(one for one in made if one.title == "longest wait for a change")
    assert (waited.newest, [one.late for one in waited.bars]) == ("31 min", [True])


def test_days_without_a_publication_have_no_bar() -> None:
    one = Published("spend", NOW - timedelta(days=3), {}, {"rows": 0, "seconds": {"plan": 2.0}})
    old = replace(one, at=NOW - timedelta(days=30))
    took, rows = trends([old, one], now=NOW, target=None, first_change=lambda *_: None)
    assert [(bar.x, bar.height, bar.text) for bar in took.bars] == [(130, 24, "2024-04-29: 2.0 s")]
    assert [(bar.height, bar.text) for bar in rows.bars] == [(1, "2024-04-29: 0")]
    assert rows.text == "rows, last 30 days: 1 with a value, from 0 to 0"
    assert trends([], now=NOW, target=timedelta(1), first_change=lambda *_: None) == ()

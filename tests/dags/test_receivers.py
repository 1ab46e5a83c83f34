"""Alerts that arrive: a chat's webhook and a mail server, both on loopback."""

from __future__ import annotations

import email
import email.policy
import json
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from spark_jobs.access.secrets import secret_path
from spark_jobs.orchestration.alerts import AlertNotifier
from spark_jobs.orchestration.resolved import ResolvedNotifier
from spark_jobs.sections import AlertSettings
from spark_jobs.settings import REPOSITORY, Settings, load_settings
from spark_jobs.storage.errors import SparkUnreachableError

pytestmark = pytest.mark.filterwarnings("default")

TOKEN = "T0-secret-B0"
PASSWORD = "mail-secret"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A project with the settings that the page on monitoring shows."""
    monkeypatch.setenv("TIDEMARK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    text = Path(REPOSITORY, "docs/watching.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    chosen = AlertSettings.model_validate(shown["alerts"])
    return load_settings().model_copy(update={"alerts": chosen, "environment": "prod"})


def only(settings: Settings, name: str) -> Settings:
    """The settings with one of the notifiers."""
    chosen = tuple(one for one in settings.alerts.notifiers if one.notifier.endswith(name))
    assert len(chosen) == 1
    alerts = settings.alerts.model_copy(update={"notifiers": chosen})
    return settings.model_copy(update={"alerts": alerts})


def context(exception: object = None) -> dict[str, Any]:
    ti = SimpleNamespace(dag_id="gold__spend", task_id="stage", run_id="r1", log_url="http://log")
    return {"ti": ti, "dag": None, "exception": exception}


@dataclass
class Webhook:
    """What a webhook was sent, and how it answers."""

    url: str = ""
    paths: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    status: int = 200


@pytest.fixture
def webhook(settings: Settings) -> Iterator[Webhook]:
    """A receiver as Slack's, whose address is in the project's secrets."""
    received = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.paths.append(self.path)
            received.texts.append(json.loads(body)["text"])
            self.send_response(received.status)
            self.end_headers()
            self.wfile.write(b"ok" if received.status == 200 else b"no_service")

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        received.url = f"http://127.0.0.1:{server.server_port}/services/{TOKEN}"
        file = secret_path(settings, "alerts/slack-webhook")
        file.parent.mkdir(parents=True)
        file.write_text(f"{received.url}\n")
        yield received
        server.shutdown()
        thread.join()


def test_slack_gets_one_message_for_an_incident_and_one_for_its_end(settings, webhook) -> None:
    settings = only(settings, "SlackNotifier")
    notifier = AlertNotifier(settings, runbook="stream-silent", table="gold.spend")
    error = SparkUnreachableError("sc://host", "refused <!channel> {{ 7 * 7 }}", seconds=1)
    for _ in range(2):
        notifier(context(error))
    ResolvedNotifier(settings)(context())
    opened, resolved = webhook.texts
    assert webhook.paths[0] == f"/services/{TOKEN}"
    assert opened.startswith("[prod] gold.spend: SPARK_UNREACHABLE\n")
    assert "Runbook: https://wiki.example.com/tidemark/runbooks/gold-refresh.md\n" in opened
    assert "http://log" in opened
    assert resolved.startswith("[prod] resolved: gold.spend: SPARK_UNREACHABLE\n")


def test_slack_mentions_in_values_are_escaped(settings, webhook) -> None:
    notifier = AlertNotifier(only(settings, "SlackNotifier"), runbook="gold-refresh")
    notifier(context(ValueError("<!channel> {{ 7 * 7 }} & <b>")))
    assert "&lt;!channel&gt; {{ 7 * 7 }} &amp; &lt;b&gt;" in webhook.texts[0]


@pytest.mark.parametrize("fault", ["refused", "away", "no secret"])
def test_the_log_says_what_fails_and_keeps_the_address(settings, webhook, caplog, fault) -> None:
    settings = only(settings, "SlackNotifier")
    file = secret_path(settings, "alerts/slack-webhook")
    expected = {"refused": "the chat answers 404: no_service", "away": "cannot be reached"}
    match fault:
        case "refused":
            webhook.status = 404
        case "away":
            file.write_text(f"http://127.0.0.1:1/services/{TOKEN}")
        case _:
            file.unlink()
    caplog.set_level("DEBUG")
    AlertNotifier(settings, runbook="gold-refresh")(context(ValueError("x")))
    assert expected.get(fault, "SECRET_MISSING") in caplog.text
    assert TOKEN not in caplog.text


@dataclass
class Mailbox:
    """What a mail server received: logins and messages."""

    port: int = 0
    logins: list[list[str]] = field(default_factory=list)
    messages: list[EmailMessage] = field(default_factory=list)


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    """A mail server that asks for a login; the connection is in Airflow's environment."""
    received = Mailbox()

    class Session(socketserver.StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 test")
            while line := self.rfile.readline().decode().strip():
                match line.split()[0].upper():
                    case "EHLO":
                        self.say("250-test")
                        self.say("250 AUTH PLAIN")
                    case "AUTH":
                        received.logins.append(line.split())
                        self.say("235 ok")
                    case "DATA":
                        self.say("354 go on")
                        self.read_message()
                        self.say("250 ok")
                    case "QUIT":
                        self.say("221 bye")
                        return
                    case _:
                        self.say("250 ok")

        def read_message(self) -> None:
            lines = iter(self.rfile.readline, b".\r\n")
            text = b"".join(one.removeprefix(b".") for one in lines)
            message = email.message_from_bytes(text, policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            received.messages.append(message)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        received.port = server.server_address[1]
        connection = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": received.port,
            "login": "tidemark",
            "password": PASSWORD,
            "extra": {"disable_ssl": True, "disable_tls": True},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield received
        server.shutdown()
        thread.join()


def test_a_mail_has_the_subject_the_runbook_and_the_escaped_message(settings, mailbox) -> None:
    settings = only(settings, "SmtpNotifier")
    notifier = AlertNotifier(settings, runbook="gold-refresh", table="gold.spend")
    notifier(context(ValueError("<script>1</script>")))
    (message,) = mailbox.messages
    assert message["Subject"] == "[prod] gold.spend: ValueError"
    assert (message["From"], message["To"]) == ("tidemark@example.com", "oncall@example.com")
    body = message.get_body(("html",))
    assert body is not None
    text = body.get_content()
    assert "https://wiki.example.com/tidemark/runbooks/gold-refresh.md" in text
    assert "&lt;script&gt;1&lt;/script&gt;" in text
    assert len(mailbox.logins) == 1

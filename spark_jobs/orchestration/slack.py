"""Sends alerts to a chat that takes Slack's incoming webhooks."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from airflow.sdk import BaseNotifier, Context

from spark_jobs.access.secrets import read_secret
from spark_jobs.settings import load_settings

# Of one request; a notifier that is slow delays the end of the task.
SECONDS: Final = 10


class SlackNotifier(BaseNotifier):
    """Posts the alert's text, with a link to its runbook, to an incoming webhook.

    Who knows the webhook's URL may write to the channel, so it is a secret.
    """

    template_fields = ("text",)

    def __init__(
        self, text: str = "{{ alert.text }}", *, webhook: str = "alerts/slack-webhook"
    ) -> None:
        """Make it for a channel.

        Args:
            text: the message, a template that may use ``alert``.
            webhook: the secret that holds the URL: the name of its file.
        """
        super().__init__()
        self.text, self.webhook = text, webhook

    def notify(self, context: Context) -> None:
        """Post it.

        Raises:
            SecretMissingError: nobody stored the URL.
            RuntimeError: the chat does not accept the message; without the URL.
        """
        del context
        url = read_secret(load_settings(), self.webhook)
        if not url.startswith(("https://", "http://")):
            raise RuntimeError(f"secret {self.webhook!r} is no HTTP address")
        message: dict[str, Any] = {"text": escaped(self.text), "unfurl_links": False}
        body = json.dumps(message).encode()
        # httpx would write the address into the task's log.
        request = Request(url, data=body, headers={"Content-Type": "application/json"})  # noqa: S310 - checked above
        try:
            with urlopen(request, timeout=SECONDS):  # noqa: S310 - checked above
                pass
        except HTTPError as error:
            said = error.read(200).decode(errors="replace").strip()
            raise RuntimeError(f"the chat answers {error.code}: {said}") from None
        except OSError as error:
            raise RuntimeError(f"the chat cannot be reached: {error}") from None


def escaped(text: str) -> str:
    """The text without Slack's own markup, which a value of a row could use to call people.

    >>> escaped("<!channel> & co")
    '&lt;!channel&gt; &amp; co'
    """
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

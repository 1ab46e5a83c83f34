"""Text of people and of rows in Markdown."""

from __future__ import annotations

import html
import re


def as_markdown(text: str) -> str:
    r"""A text of anybody, escaped so that Markdown shows it unchanged.

    >>> as_markdown("<b>50% off</b> | it's *new*")
    "&lt;b&gt;50% off&lt;/b&gt; \\| it's \\*new\\*"
    """
    return re.sub(r"([\\`*_{}\[\]()#+!|~])", r"\\\1", html.escape(text, quote=False))

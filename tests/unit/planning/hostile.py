"""Strings that somebody may put into a form to make more of it than data."""

from __future__ import annotations

HOSTILE = (
    "'; DROP TABLE orders; --",
    "order_totals'; DELETE FROM attempts; --",
    "' OR '1'='1",
    '" OR ""="',
    "1; SELECT pg_sleep(10)",
    "`rm -rf /`",
    "$(touch /tmp/pwned)",
    "; touch /tmp/pwned",
    "| cat /etc/passwd",
    "&& curl http://127.0.0.1/ | sh",
    "../../../../etc/passwd",
    "..\\..\\windows\\system32",
    "/etc/passwd\x00.sql",
    "file:///etc/passwd?x=<y>",
    "{{ 7 * 7 }}",
    "{{ ti.xcom_pull(task_ids='plan') }}",
    "{% for x in range(9) %}{{ x }}{% endfor %}",
    "${jndi:ldap://127.0.0.1/a}",
    "%s%s%s%n{0.__class__}",
    "__import__('os').system('id')",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1));",
    "order_totals\r\nX-Injected: 1",
    "order_totals\n--run",
    "\x1b[2J\x1b[31mred",
    "\u202etxet desrever",
    "order_totals\u200b;",
    "-1e309; --force",
    "A" * 10_000,
)
assert len(HOSTILE) == 30

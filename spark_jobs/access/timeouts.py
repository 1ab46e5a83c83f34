"""How long clients wait for a server that no longer answers.

Without these limits, a connection whose packets vanish (a network that is cut, a firewall that
forgot it) blocks its client for a quarter of an hour or more.
"""

from __future__ import annotations

from typing import Any, Final

# Parameters of libpq. Connecting, and a server that is silent: 25 seconds without data, 30 seconds
# (in milliseconds) with data that it does not acknowledge.
POSTGRES: Final[dict[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

"""Faults of a walk in the network between the parts: cut, lossy, and forgotten connections.

The kernel's packet filter drops packets on loopback. Each fault is an element of a set with a
timeout, so that later steps run while it lasts.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from tests.walk.world import World

_CUT_SECONDS = (5, 40)
_LOSSY_SECONDS = (10, 60)
# Firewalls forget idle connections for good; here the port of the client may come again.
_FORGOTTEN_SECONDS = 300
_LOST_PERCENT = 10
_RULES = """
table inet {name} {{
  set cut {{ type inet_service; flags timeout; }}
  set lossy {{ type inet_service; flags timeout; }}
  set forgotten {{ type inet_service . inet_service; flags timeout; }}
  chain received {{
    type filter hook input priority 0; policy accept;
    iifname != "lo" accept
    tcp sport . tcp dport @forgotten drop
    tcp dport @cut drop
    tcp sport @cut drop
    tcp dport @lossy numgen random mod 100 < {lost} drop
    tcp sport @lossy numgen random mod 100 < {lost} drop
  }}
}}
"""


@dataclass(frozen=True)
class Network:
    """The packet filter's table of one walk."""

    table: str

    def add(self, name: str, element: str, seconds: float) -> None:
        """Add an element to a set for some seconds; replaces an earlier one."""
        elements = f"{{ {element} timeout {round(seconds)}s }}"
        with suppress(subprocess.CalledProcessError):
            _nft("delete", "element", "inet", self.table, name, f"{{ {element} }}")
        _nft("add", "element", "inet", self.table, name, elements)

    def forget(self, client: psutil.Process, port: int) -> int:
        """Drop the packets of a process's open connections to a port; returns their number."""
        found = _ports(client, port)
        for one in found:
            for pair in (f"{one} . {port}", f"{port} . {one}"):
                self.add("forgotten", pair, _FORGOTTEN_SECONDS)
        return len(found)

    def restore(self) -> None:
        """End cuts and losses; forgotten connections stay forgotten."""
        for name in ("cut", "lossy"):
            _nft("flush", "set", "inet", self.table, name)


@contextmanager
def network() -> Iterator[Network | None]:
    """The filter's table, without any element; None if this account may not filter packets."""
    if os.getuid() != 0:
        yield None
        return
    table = f"tidemark_walk_{os.getpid()}"
    subprocess.run(
        [_program(), "-f", "-"],
        input=_RULES.format(name=table, lost=_LOST_PERCENT),
        text=True,
        check=True,
    )
    try:
        yield Network(table)
    finally:
        _nft("delete", "table", "inet", table)


def cut_a_part_off(world: World, rng: random.Random) -> str:
    """Drop every packet to and from a part's port, as when a cable is pulled."""
    return _filtered(world, rng, "cut", _CUT_SECONDS)


def lose_packets(world: World, rng: random.Random) -> str:
    """Drop some packets to and from a part's port; its connections become slow."""
    return _filtered(world, rng, "lossy", _LOSSY_SECONDS)


def forget_connections(world: World, rng: random.Random) -> str:
    """Drop the packets of one part's open connections to another part; new ones work."""
    if world.network is None:
        return "this account may not filter packets"
    found = {
        (name, server): clients
        for server, port in servers(world).items()
        for name in (*servers(world), "streams")
        if name != server and (clients := _clients(world, name, port))
    }
    if not found:
        return "no part has a connection to another"
    name, server = rng.choice(sorted(found))
    many = sum(world.network.forget(one, servers(world)[server]) for one in found[name, server])
    return f"{many} of {name} to {server}"


def servers(world: World) -> dict[str, int]:
    """The parts that listen, and their ports."""
    ports = world.settings.ports
    return {
        "postgres": ports.postgres,
        "kafka": ports.kafka,
        "connect": ports.connect,
        "spark-connect": ports.spark_connect,
        "redis": ports.redis,
    }


def _filtered(world: World, rng: random.Random, name: str, between: tuple[int, int]) -> str:
    part, seconds = rng.choice(sorted(servers(world))), rng.uniform(*between)
    if world.network is None:
        return "this account may not filter packets"
    world.network.add(name, str(servers(world)[part]), seconds)
    return f"{part} for {seconds:.0f} s"


def _clients(world: World, part: str, port: int) -> list[psutil.Process]:
    """The processes of a part with open connections to a port."""
    pid = world.running.part(part).pid
    if not pid:
        return []
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        return [one for one in (parent, *parent.children(recursive=True)) if _ports(one, port)]
    return []


def _ports(process: psutil.Process, server: int) -> set[int]:
    """The local ports of a process's open connections to a port."""
    with suppress(psutil.NoSuchProcess):
        found = [one for one in process.net_connections("tcp") if one.raddr]
        return {one.laddr.port for one in found if one.raddr.port == server}
    return set()


def _nft(*words: str) -> None:
    subprocess.run([_program(), *words], check=True, capture_output=True)


def _program() -> str:
    found = shutil.which("nft")
    assert found, "there is no nft, run make walk"
    return found


NETWORK_STEPS: dict[str, Callable[[World, random.Random], str]] = {
    "cut a part off": cut_a_part_off,
    "lose packets": lose_packets,
    "forget connections": forget_connections,
}

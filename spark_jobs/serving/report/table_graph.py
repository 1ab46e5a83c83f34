"""The dependency graph of tables: as pairs, mapping, Mermaid diagram, tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.tree import Tree

if TYPE_CHECKING:
    from spark_jobs.graph.manifest import Manifest


def edges(manifest: Manifest) -> list[tuple[str, str]]:
    """Sorted pairs of a table and a reader, each as ``layer.name``."""
    pairs = [(f"bronze.{one.source}", str(one.table_name)) for one in manifest.silver.values()]
    pairs += [(name, str(one.table_name)) for one in manifest.gold.values() for name in one.inputs]
    return sorted(pairs)


def as_dict(manifest: Manifest) -> dict[str, object]:
    """The graph as a JSON object.

    Returns:
        ``nodes``, each with ``table``, ``layer``, ``file`` and, for a gold view, ``tier``; and
            ``edges``, each with ``from`` and ``to``.
    """
    nodes: list[dict[str, object]] = [
        {"table": str(one.table_name), "layer": "bronze", "file": one.file}
        for one in manifest.sources.values()
    ]
    nodes += [
        {"table": str(one.table_name), "layer": "silver", "file": one.file}
        for one in manifest.silver.values()
    ]
    nodes += [
        {"table": str(one.table_name), "layer": "gold", "tier": one.tier, "file": one.file}
        for one in manifest.gold.values()
    ]
    return {"nodes": nodes, "edges": [{"from": start, "to": end} for start, end in edges(manifest)]}


def as_mermaid(manifest: Manifest) -> str:
    """A flowchart with a box per table, left to right."""
    lines = ["flowchart LR"]
    layers: dict[str, Iterable[str]] = {
        "bronze": manifest.sources,
        "silver": manifest.silver,
        "gold": manifest.gold,
    }
    for layer, tables in layers.items():
        lines.append(f"  subgraph {layer}")
        lines += [f"    {layer}_{name}[{name}]" for name in tables]
        lines.append("  end")
    lines += [
        f"  {start.replace('.', '_')} --> {end.replace('.', '_')}" for start, end in edges(manifest)
    ]
    return "\n".join(lines)


def as_tree(manifest: Manifest) -> Tree:
    """Layers, gold tiers, and tables with their inputs."""
    tree = Tree(f"[bold]{escape(manifest.project)}[/bold]")
    bronze = tree.add("bronze")
    for source in manifest.sources.values():
        origin = escape(source.topic or source.location or source.path or "")
        bronze.add(f"{source.name} [dim]<- {source.format} {origin}[/dim]")
    silver = tree.add("silver")
    for table in manifest.silver.values():
        silver.add(f"{table.name} [dim]<- bronze.{table.source}[/dim]")
    for number, tier in enumerate(manifest.gold_by_tier()):
        gold = tree.add(f"gold, tier {number}")
        for view in tier:
            due = f", {view.due}" if view.due else ""
            inputs = ", ".join(view.inputs)
            gold.add(f"{view.name} [dim]<- {inputs} ({view.refresh}{due})[/dim]")
    return tree

"""The forms of the operators' DAGs: their fields, and the patterns that Airflow checks.

The first task of a DAG checks all values again.
"""

from __future__ import annotations

from airflow.sdk import Param

from spark_jobs.graph.manifest import Manifest
from spark_jobs.planning.request import ATTEMPT, INSTANT, REPLAY_ID, TICKET
from spark_jobs.planning.selection import SELECTION

CHUNKS = ("1 hour", "6 hours", "1 day", "7 days")


def replay_params(views: list[str], selections: list[str]) -> dict[str, Param]:
    """The form of a replay, which offers views and selections of them.

    Airflow shows fields without a section. It collapses sections, which contain rarely used fields.

    Returns:
        the fields by name; ``validate_replay`` reads them.
    """
    return {
        "views": Param(
            type="array",
            items={"type": "string", "pattern": f"^{SELECTION}$"},
            examples=[*views, *selections],
            minItems=1,
            title="Views",
            description="Names or selections of views, as on the command line.",
        ),
        "branch": Param(default=False, type="boolean", title="Include all downstream views"),
        "from": _instant("From", "First instant of the range (UTC). Empty: the whole view."),
        "to": _instant("To", "First instant after the range."),
        "chunk": Param(
            default=None,
            type=["null", "string"],
            enum=[None, *CHUNKS],
            title="Chunk",
            description="Compute the range in pieces of this length.",
            section="How",
        ),
        "only_stale": Param(
            default=False,
            type="boolean",
            title="Only stale views",
            description="Skip views without pending changes.",
            section="How",
        ),
        **_why(),
        "dry_run": Param(
            default=True,
            type="boolean",
            title="Dry run",
            description="Only show the plan.",
        ),
    }


def selections_of(manifest: Manifest) -> list[str]:
    """Selections by tag, owner and state of the gold views."""
    views = manifest.gold.values()
    tags = sorted({f"tag:{tag}" for view in views for tag in view.tags})
    return [*tags, *sorted({f"owner:{view.owner}" for view in views}), "state:changed"]


def rollback_params(views: list[str]) -> dict[str, Param]:
    """The form of a rollback: fields by name, which ``validate_rollback`` reads."""
    return {
        "view": _one_of(views),
        "version": Param(
            default=None,
            type=["null", "integer"],
            minimum=0,
            title="Version",
            description="Version of the published table. Empty: the one before the last change.",
        ),
        "replay": Param(
            default=None,
            type=["null", "string"],
            pattern=_whole(REPLAY_ID),
            title="Replay",
            description="A replay or a rollback: restore the content before it.",
        ),
        **_why(),
    }


def release_params(views: list[str]) -> dict[str, Param]:
    """The form of a release: fields by name, which ``validate_release`` reads."""
    return {
        "view": _one_of(views),
        "attempt": Param(
            default=None,
            type=["null", "string"],
            pattern=_whole(ATTEMPT),
            title="Attempt",
            description="The result to publish. Empty: the newest that waits.",
        ),
        **_why(),
    }


def _one_of(views: list[str]) -> Param:
    return Param(type="string", enum=views or [""], title="View")


def _why() -> dict[str, Param]:
    return {
        "reason": Param(
            type="string",
            minLength=10,
            maxLength=300,
            title="Reason",
            description="The reason; it is recorded.",
        ),
        "ticket": Param(
            default=None, type=["null", "string"], pattern=_whole(TICKET), title="Ticket"
        ),
    }


def _whole(pattern: str) -> str:
    """A pattern that matches a whole field, or an empty one."""
    return rf"^({pattern})?$"


def _instant(title: str, description: str) -> Param:
    return Param(
        default=None,
        type=["null", "string"],
        format="date-time",
        pattern=_whole(INSTANT),
        title=title,
        description=description,
    )

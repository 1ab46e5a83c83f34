"""Asset events in the tests' Airflow."""

from __future__ import annotations

from typing import Any

from airflow.models.asset import AssetEvent, AssetModel
from airflow.utils.session import create_session
from sqlalchemy import select


def events(name: str) -> list[dict[str, Any]]:
    """The extras of an asset's events, oldest first; the events are deleted."""
    of_asset = AssetModel.id == AssetEvent.asset_id
    query = select(AssetEvent).join(AssetModel, of_asset).where(AssetModel.name == name)
    with create_session() as session:
        found = session.scalars(query.order_by(AssetEvent.id)).all()
        told = [dict(one.extra) for one in found]
        for one in found:
            session.delete(one)
    return told

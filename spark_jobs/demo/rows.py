"""Generates independent rows of the shop's database."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal

from spark_jobs.demo import catalogue
from spark_jobs.demo.operations import Change, insert


def new_user(rng: random.Random, user_id: int, now: datetime) -> Change:
    """A user of any country, segment and tier, signed up in the last 900 days."""
    values = {
        "name": f"{rng.choice(catalogue.FIRST_NAMES)} {rng.choice(catalogue.LAST_NAMES)}",
        "email": f"user{user_id}@example.com",
        "country": rng.choice(catalogue.COUNTRIES),
        "segment": rng.choice(catalogue.SEGMENTS),
        "tier": rng.choice(catalogue.TIERS),
        "signed_up_at": now - timedelta(days=rng.randint(0, 900)),
        "updated_at": now,
    }
    return insert("users", {"user_id": user_id}, values)


def new_product(rng: random.Random, product_id: int, price: Decimal, now: datetime) -> Change:
    """A product of any category."""
    values = {
        "name": _thing(rng),
        "category": rng.choice(catalogue.CATEGORIES),
        "price": price,
        "updated_at": now,
    }
    return insert("products", {"product_id": product_id}, values)


def new_title(rng: random.Random, title_id: int, now: datetime) -> Change:
    """A film or a series, 20 to 150 minutes long."""
    values = {
        "name": f"The {_thing(rng)}",
        "kind": rng.choice(catalogue.KINDS),
        "genre": rng.choice(catalogue.GENRES),
        "duration_seconds": rng.randint(1200, 9000),
        "updated_at": now,
    }
    return insert("titles", {"title_id": title_id}, values)


def new_price(rng: random.Random) -> Decimal:
    """Between 0.99 and 499.99."""
    return Decimal(rng.randint(99, 49_999)) / 100


def _thing(rng: random.Random) -> str:
    return f"{rng.choice(catalogue.ADJECTIVES)} {rng.choice(catalogue.THINGS)}"

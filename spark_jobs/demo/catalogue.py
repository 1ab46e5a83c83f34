"""Vocabulary of the demo's generated data."""

from __future__ import annotations

COUNTRIES = ("AT", "BR", "DE", "ES", "FR", "GB", "IN", "JP", "NG", "US")
SEGMENTS = ("consumer", "consumer", "consumer", "family", "family", "business")
TIERS = ("bronze", "silver", "gold", "platinum")
FIRST_NAMES = ("Ada", "Björn", "Chidi", "Dolores", "Émile", "Fatima", "Grace", "Hiro", "Inês", "Jo")
LAST_NAMES = ("Ahmed", "Berg", "Costa", "Dubois", "Eze", "Fischer", "García", "Hughes", "Ito", "Ng")
CATEGORIES = ("books", "games", "garden", "home", "music", "toys")
ADJECTIVES = ("amber", "bright", "calm", "deep", "early", "foldable", "green", "hollow")
THINGS = ("anchor", "basket", "compass", "drum", "easel", "flute", "globe", "hammock")
GENRES = ("comedy", "crime", "documentary", "drama", "family")
KINDS = ("film", "series")
PAGES = ("/", "/search", "/product", "/cart", "/checkout")
ELEMENTS = ("banner", "buy", "filter", "menu", "next")
SERVICES = ("basket", "catalogue", "checkout", "player")
PATHS = ("/v1/list", "/v1/item", "/v1/start")
STATUS_AFTER = {"placed": "paid", "paid": "shipped", "shipped": "completed"}

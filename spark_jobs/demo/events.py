"""Well-formed events of the demo's Kafka topics, as mappings ready for JSON."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from spark_jobs.demo import catalogue
from spark_jobs.demo.shop import Shop

Body = dict[str, object]


@dataclass
class EventMaker:
    """Generates events about the shop's current users, products and titles."""

    rng: random.Random
    shop: Shop
    # Account: its number of events and its balance in cents.
    accounts: dict[int, tuple[int, int]] = field(default_factory=dict)
    stock: dict[int, int] = field(default_factory=dict)

    def draw(self) -> tuple[str, object, Body]:
        """A topic, the value to key the record by, and the event without id and time."""
        choices: tuple[tuple[str, Callable[[], tuple[object, Body]], int], ...] = (
            ("view_events", self.view, 28),
            ("click_events", self.click, 16),
            ("request_log", self.request, 20),
            ("login_attempts", self.login, 10),
            ("cart_events", self.cart, 10),
            ("account_events", self.account, 8),
            ("inventory_updates", self.inventory, 8),
        )
        topic, make, _ = self.rng.choices(choices, [weight for *_, weight in choices])[0]
        key, body = make()
        return topic, key, body

    def view(self) -> tuple[object, Body]:
        """Up to ten minutes of watching."""
        user_id = self.rng.choice(self.shop.users)
        return user_id, {
            "user_id": user_id,
            "title_id": self.rng.choice(self.shop.titles),
            "country": self.rng.choice(catalogue.COUNTRIES),
            "watch_seconds": self.rng.randint(5, 600),
        }

    def click(self) -> tuple[object, Body]:
        """A click somewhere in the shop."""
        user_id = self.rng.choice(self.shop.users)
        return user_id, {
            "user_id": user_id,
            "page": self.rng.choice(catalogue.PAGES),
            "element": self.rng.choice(catalogue.ELEMENTS),
        }

    def request(self) -> tuple[object, Body]:
        """A request; latency has a long tail."""
        service = self.rng.choice(catalogue.SERVICES)
        return service, {
            "service": service,
            "path": self.rng.choice(catalogue.PATHS),
            "status": self.rng.choices((200, 404, 500), (95, 4, 1))[0],
            "latency_ms": 1 + int(self.rng.lognormvariate(3.5, 0.8)),
        }

    def login(self) -> tuple[object, Body]:
        """A login attempt; one address in ten guesses passwords and mostly fails."""
        guessing = self.rng.random() < 0.3
        ip = f"198.51.100.{self.rng.randint(1, 3) if guessing else self.rng.randint(10, 200)}"
        return ip, {
            "user_id": self.rng.choice(self.shop.users),
            "ip": ip,
            "success": self.rng.random() < (0.05 if guessing else 0.9),
        }

    def cart(self) -> tuple[object, Body]:
        """A product added to a cart or removed from it."""
        customer = f"customer-{self.rng.choice(self.shop.users)}"
        return customer, {
            "customer": customer,
            "item": self.rng.choice(catalogue.THINGS),
            "action": self.rng.choices(("add", "remove"), (3, 1))[0],
            "quantity": self.rng.randint(1, 3),
        }

    def account(self) -> tuple[object, Body]:
        """The next event of an account; a balance never falls below zero."""
        account_id = self.rng.choice(self.shop.users)
        count, balance = self.accounts.get(account_id, (0, 0))
        if count == 0:
            event, cents = "opened", 0
        elif balance > 0 and self.rng.random() < 0.4:
            event, cents = "withdrawn", self.rng.randint(1, balance)
        else:
            event, cents = "deposited", self.rng.randint(100, 100_000)
        balance += -cents if event == "withdrawn" else cents
        self.accounts[account_id] = (count + 1, balance)
        return account_id, {
            "account_id": account_id,
            "sequence": count + 1,
            "event": event,
            "amount": cents / 100,
        }

    def inventory(self) -> tuple[object, Body]:
        """The stock of a product after a sale or a delivery."""
        product_id = self.rng.choice(list(self.shop.products))
        before = self.stock.get(product_id, 100)
        after = before + 50 if before < 10 else before - self.rng.randint(1, 5)
        self.stock[product_id] = after
        return product_id, {"product_id": product_id, "stock_remaining": after}

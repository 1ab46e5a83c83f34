"""The load generator's model of the shop's database, and transactions that change it.

Each method updates the model together with the transaction that it returns, so a transaction is
valid after the previous ones.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from spark_jobs.demo import catalogue, rows
from spark_jobs.demo.operations import (
    Change,
    Ending,
    Row,
    Transaction,
    delete,
    insert,
    update,
)

# Orders that can still change; older ones stay unchanged, so that a long run stays fast.
REMEMBERED_ORDERS = 2_000


@dataclass
class Order:
    """What the generator needs to know about an existing order."""

    order_id: int
    user_id: int
    product_id: int
    status: str
    amount: Decimal
    lines: int

    @property
    def key(self) -> Row:
        return {"order_id": self.order_id}


@dataclass
class Shop:
    """The rows of one load run; ids start above ``first_id``."""

    rng: random.Random
    first_id: int
    users: list[int] = field(default_factory=list)
    products: dict[int, Decimal] = field(default_factory=dict)
    titles: list[int] = field(default_factory=list)
    orders: dict[int, Order] = field(default_factory=dict)
    issued: int = 0

    def opening(self, now: datetime, *, users: int, products: int, titles: int) -> Transaction:
        """A transaction with the rows that all others reference."""
        changes = [
            *(self._new_user(now) for _ in range(users)),
            *(self._new_product(now) for _ in range(products)),
            *(self._new_title(now) for _ in range(titles)),
        ]
        return Transaction(tuple(changes))

    def step(self, now: datetime) -> Transaction:
        """The next transaction, chosen at random."""
        choices: tuple[tuple[Callable[[datetime], Transaction], int], ...] = (
            (self.place_order, 30),
            (self.advance_order, 34),
            (self.correct_amount, 7),
            (self.cancel_order, 5),
            (self.delete_order, 4),
            (self.hurried_order, 4),
            (self.regretted_order, 2),
            (self.failed_order, 2),
            (self.change_user, 6),
            (self.sign_up, 2),
            (self.change_price, 2),
            (self.change_titles, 2),
        )
        step, _ = self.rng.choices(choices, [weight for _, weight in choices])[0]
        return step(now)

    def place_order(self, now: datetime) -> Transaction:
        """An order with one to three lines; one in five was taken on an earlier day."""
        return Transaction(tuple(self._new_order(now)))

    def advance_order(self, now: datetime) -> Transaction:
        """The next status on the way to completed."""
        order = self._some_order(*catalogue.STATUS_AFTER)
        if order is None:
            return self.place_order(now)
        return Transaction((self._advance(order, now),))

    def correct_amount(self, now: datetime) -> Transaction:
        """A different amount, and a different price in the first line."""
        order = self._some_order(*catalogue.STATUS_AFTER, "completed")
        if order is None:
            return self.place_order(now)
        order.amount = rows.new_price(self.rng)
        line = {"order_id": order.order_id, "line": 1}
        return Transaction(
            (
                update("order_items", line, {"unit_price": order.amount}),
                update("orders", order.key, {"amount": order.amount, "updated_at": now}),
            )
        )

    def cancel_order(self, now: datetime) -> Transaction:
        """A cancellation in any state of the order."""
        order = self._some_order(*catalogue.STATUS_AFTER, "completed")
        if order is None:
            return self.place_order(now)
        order.status = "cancelled"
        return Transaction(
            (update("orders", order.key, {"status": order.status, "updated_at": now}),)
        )

    def delete_order(self, now: datetime) -> Transaction:
        """The deletion of an order and its lines."""
        order = self._some_order()
        if order is None:
            return self.place_order(now)
        return Transaction(tuple(self._delete(order)))

    def hurried_order(self, now: datetime) -> Transaction:
        """An order placed, paid and corrected in one transaction: several changes of one key."""
        changes = self._new_order(now)
        order = self.orders[max(self.orders)]
        changes.append(self._advance(order, now))
        order.amount = rows.new_price(self.rng)
        changes.append(update("orders", order.key, {"amount": order.amount, "updated_at": now}))
        return Transaction(tuple(changes))

    def regretted_order(self, now: datetime) -> Transaction:
        """An order placed and deleted in one transaction, so it is never visible."""
        changes = self._new_order(now)
        return Transaction((*changes, *self._delete(self.orders[max(self.orders)])))

    def failed_order(self, now: datetime) -> Transaction:
        """A transaction that is rolled back: its changes must not be captured."""
        changes = self._new_order(now)
        del self.orders[max(self.orders)]
        return Transaction(tuple(changes), Ending.ROLLBACK)

    def change_user(self, now: datetime) -> Transaction:
        """A different tier or, less often, a different segment."""
        key = {"user_id": self.rng.choice(self.users)}
        values: dict[str, object] = {"tier": self.rng.choice(catalogue.TIERS), "updated_at": now}
        if self.rng.random() < 0.2:
            values["segment"] = self.rng.choice(catalogue.SEGMENTS)
        return Transaction((update("users", key, values),))

    def sign_up(self, now: datetime) -> Transaction:
        """A new user."""
        return Transaction((self._new_user(now),))

    def change_price(self, now: datetime) -> Transaction:
        """A different price; existing orders keep the old one."""
        product_id = self.rng.choice(list(self.products))
        self.products[product_id] = price = rows.new_price(self.rng)
        values = {"price": price, "updated_at": now}
        return Transaction((update("products", {"product_id": product_id}, values),))

    def change_titles(self, now: datetime) -> Transaction:
        """One title removed and another one released."""
        gone = self.titles.pop(self.rng.randrange(len(self.titles)))
        return Transaction((delete("titles", {"title_id": gone}), self._new_title(now)))

    def _advance(self, order: Order, now: datetime) -> Change:
        order.status = catalogue.STATUS_AFTER[order.status]
        return update("orders", order.key, {"status": order.status, "updated_at": now})

    def _delete(self, order: Order) -> list[Change]:
        del self.orders[order.order_id]
        lines = (
            delete("order_items", {"order_id": order.order_id, "line": line})
            for line in range(1, order.lines + 1)
        )
        return [*lines, delete("orders", order.key)]

    def _some_order(self, *statuses: str) -> Order | None:
        fitting = [o for o in self.orders.values() if not statuses or o.status in statuses]
        return self.rng.choice(fitting) if fitting else None

    def _new_order(self, now: datetime) -> list[Change]:
        order_id = self._next_id()
        picks = self.rng.choices(list(self.products), k=self.rng.randint(1, 3))
        quantities = [self.rng.randint(1, 4) for _ in picks]
        amount = sum(
            (
                self.products[product] * count
                for product, count in zip(picks, quantities, strict=True)
            ),
            Decimal(0),
        )
        days_ago = self.rng.randint(1, 6) if self.rng.random() < 0.2 else 0
        user_id = self.rng.choice(self.users)
        order = Order(order_id, user_id, picks[0], "placed", amount, len(picks))
        self.orders[order_id] = order
        if len(self.orders) > REMEMBERED_ORDERS:
            del self.orders[min(self.orders)]
        values = {
            "user_id": order.user_id,
            "product_id": order.product_id,
            "status": order.status,
            "amount": amount,
            "created_at": now - timedelta(days=days_ago),
            "updated_at": now,
        }
        lines = (
            insert(
                "order_items",
                {"order_id": order_id, "line": number},
                {
                    "product_id": product,
                    "quantity": quantities[number - 1],
                    "unit_price": self.products[product],
                },
            )
            for number, product in enumerate(picks, start=1)
        )
        return [insert("orders", order.key, values), *lines]

    def _new_user(self, now: datetime) -> Change:
        self.users.append(user_id := self._next_id())
        return rows.new_user(self.rng, user_id, now)

    def _new_product(self, now: datetime) -> Change:
        product_id, price = self._next_id(), rows.new_price(self.rng)
        self.products[product_id] = price
        return rows.new_product(self.rng, product_id, price, now)

    def _new_title(self, now: datetime) -> Change:
        self.titles.append(title_id := self._next_id())
        return rows.new_title(self.rng, title_id, now)

    def _next_id(self) -> int:
        self.issued += 1
        return self.first_id + self.issued

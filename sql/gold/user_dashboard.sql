/* gold
description: >
  One row per user for the front page: total spend, open orders, items in the cart, and the time
  at which the user last watched a title of the catalogue.
grain: [user_id]
owner: shop
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [shop]
columns:
  total_spend: Total amount of completed orders.
  open_orders: Number of orders that are placed, paid or shipped.
  cart_items: Number of pieces in the cart.
  last_seen_at: Time of the latest view event for a title of the catalogue.
*/
WITH open AS (
  SELECT
    o.user_id,
    COUNT(*) AS orders
  FROM silver.orders AS o
  WHERE o.status IN ('placed', 'paid', 'shipped')
  GROUP BY o.user_id
),
carts AS (
  SELECT
    c.customer,
    SUM(c.quantity) AS items
  FROM gold.cart_contents AS c
  GROUP BY c.customer
),
watched AS (
  SELECT
    v.user_id,
    MAX(v.last_seen_at) AS last_seen_at
  FROM gold.viewership_summary AS v
  GROUP BY v.user_id
)
SELECT
  u.user_id,
  COALESCE(s.total_spend, 0.00) AS total_spend, -- of completed orders
  COALESCE(p.orders, 0) AS open_orders,
  COALESCE(c.items, 0) AS cart_items,
  w.last_seen_at
FROM silver.users AS u
LEFT JOIN gold.user_order_stats AS s ON s.user_id = u.user_id
LEFT JOIN open AS p ON p.user_id = u.user_id
LEFT JOIN carts AS c ON c.customer = CONCAT('customer-', u.user_id)
LEFT JOIN watched AS w ON w.user_id = u.user_id

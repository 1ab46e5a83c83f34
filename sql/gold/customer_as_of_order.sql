/* gold
description: >
  Name and segment of each order's customer at the time of the order, from the history of users.
  A late correction of the history changes the row; a change of the user after the order does
  not. If the order is older than the known history of its user, name and segment are NULL.
grain: [order_id]
owner: analytics
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [shop]
columns:
  customer_name: Name at the time of the order.
  segment_at_order: "Segment at the time of the order: consumer, family or business."
*/
SELECT
  o.order_id,
  u.name AS customer_name,
  u.segment AS segment_at_order
FROM silver.orders AS o
LEFT JOIN silver.users_history AS u
  ON u.user_id = o.user_id
  AND u.valid_from <= o.created_at
  AND (u.valid_to IS NULL OR o.created_at < u.valid_to)

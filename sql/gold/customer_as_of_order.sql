/* gold
description: >
  The name and the segment that the customer of each order had when they ordered, from the history
  of users. A late correction of the history corrects the row; nothing that happens after the order
  does. An order from before all that is known of its user has no name.
grain: [order_id]
owner: analytics
refresh: micro-batch
every: 1 hour
freshness: 2 hours
tags: [shop]
columns:
  customer_name: The name as of the order.
  segment_at_order: consumer, family or business, as of the order.
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

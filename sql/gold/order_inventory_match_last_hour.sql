/* gold
description: >
  The rows of order_inventory_match for orders of the last hour by the clock. A row is removed
  when its order is one hour old, even if no event arrives.
owner: warehouse
refresh: micro-batch
every: 15 minutes
freshness: 30 minutes
tags: [shop]
columns:
  stock_remaining: Number of pieces in stock, as reported.
  update_time: Time of the stock report; at most one minute before the order.
*/
SELECT
  o.order_id,
  o.product_id,
  o.amount,
  i.stock_remaining,
  i.event_time AS update_time
FROM silver.orders AS o
JOIN silver.inventory_updates AS i
  ON i.product_id = o.product_id
  AND i.event_time BETWEEN o.created_at - INTERVAL 1 MINUTE AND o.created_at
WHERE o.created_at > CURRENT_TIMESTAMP() - INTERVAL 1 HOUR AND o.created_at <= CURRENT_TIMESTAMP()

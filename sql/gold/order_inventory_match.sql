/* gold
description: >
  Each order with every stock level reported for its product in the minute before the order,
  whichever of the two arrived first. Orders without such a report have no row.
owner: warehouse
refresh: micro-batch
every: 1 hour
freshness: 2 hours
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

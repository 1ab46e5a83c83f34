/* gold
description: >
  What lies in each cart: what was added less what was removed, in whatever order the events
  arrived. An item that is not there any more has no row.
owner: shop
refresh: micro-batch
every: 5 minutes
freshness: 15 minutes
tags: [shop]
columns:
  quantity: What was added less what was removed; above zero.
*/
SELECT
  c.customer,
  c.item,
  SUM(CASE c.action WHEN 'add' THEN c.quantity ELSE -c.quantity END) AS quantity
FROM silver.cart_events AS c
GROUP BY c.customer, c.item
HAVING SUM(CASE c.action WHEN 'add' THEN c.quantity ELSE -c.quantity END) > 0

/* gold
description: >
  Contents of each cart: quantities added minus quantities removed, whatever the order of
  arrival. Items that are no longer in the cart have no row.
owner: shop
refresh: micro-batch
every: 5 minutes
freshness: 15 minutes
tags: [shop]
columns:
  quantity: Quantity added minus quantity removed; above zero.
*/
SELECT
  c.customer,
  c.item,
  SUM(CASE c.action WHEN 'add' THEN c.quantity ELSE -c.quantity END) AS quantity
FROM silver.cart_events AS c
GROUP BY c.customer, c.item
HAVING SUM(CASE c.action WHEN 'add' THEN c.quantity ELSE -c.quantity END) > 0

/* gold
description: >
  Every order with its user's tier and country and its product's category, all three as they are
  now. An order's product is the one of its first line. An order shows as soon as its user and its
  product have arrived too.
grain: [order_id]
owner: analytics
refresh: continuous
freshness: 1 minute
tags: [shop]
*/
SELECT
  o.order_id,
  o.amount,
  u.tier AS user_tier,
  u.country,
  p.category AS product_category,
  o.created_at AS order_time
FROM silver.orders AS o
JOIN silver.users AS u ON u.user_id = o.user_id
JOIN silver.products AS p ON p.product_id = o.product_id

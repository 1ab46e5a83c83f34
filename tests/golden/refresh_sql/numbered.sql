-- gold.numbered: full: bronze.orders@0→@1 changed and a window without PARTITION BY reads every row for each change

-- the view, with its tables at their versions
SELECT o.order_id,
  ROW_NUMBER() OVER (ORDER BY o.order_id) AS place
FROM delta.`PROJECT/data/orders` VERSION AS OF 1 AS o;

-- gold.numbered: full: bronze.orders@0→@1 changed and a window without PARTITION BY reads every row for each change

-- the view, with its tables at their versions
CREATE OR REPLACE TEMPORARY VIEW __refresh_result AS
SELECT o.order_id,
  ROW_NUMBER() OVER (ORDER BY o.order_id) AS place
FROM delta.`PROJECT/data/orders` VERSION AS OF 1 AS o;

SELECT * FROM __refresh_result;

-- publish: one commit, shown as comments because this script writes no table
-- overwrite; if few rows differ, delete and insert those alone
-- INSERT OVERWRITE delta.`PROJECT/state/lake/gold/numbered`
-- SELECT `order_id`, `place`
-- FROM __refresh_result;

-- gold.united: incremental: bronze.orders@0→@1; row deltas

-- what changed in bronze.orders after version 0, up to 1
CREATE OR REPLACE TEMPORARY VIEW __refresh_bronze_orders AS
SELECT *, IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS __w
FROM TABLE_CHANGES_BY_PATH('PROJECT/data/orders', 1, 1);

-- the rows to delete (-) from and insert (+) into gold.united@0, merged as multisets
SELECT
  user_id,
  __sum AS __w
FROM (
  SELECT
    user_id,
    SUM(__w) AS __sum
  FROM (
    SELECT
      user_id__2 AS user_id,
      __w
    FROM (
      SELECT
        user_id__2 AS user_id__2,
        __w
      FROM (
        SELECT
          user_id AS user_id__2,
          __w
        FROM (
          SELECT
            user_id AS user_id,
            __w
          FROM __refresh_bronze_orders
        ) AS t
      ) AS t
    ) AS t
  ) AS t
  GROUP BY
    user_id
) AS t
WHERE
  __sum <> 0;

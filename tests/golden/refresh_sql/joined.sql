-- gold.joined: incremental: bronze.orders@0→@1; row deltas

-- what changed in bronze.orders after version 0, up to 1
CREATE OR REPLACE TEMPORARY VIEW __refresh_bronze_orders AS
SELECT *, IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS __w
FROM TABLE_CHANGES_BY_PATH('PROJECT/data/orders', 1, 1);

-- what changed below the next operator, without what cancels out
CREATE OR REPLACE TEMPORARY VIEW __refresh_change_1 AS
SELECT
  order_id,
  user_id,
  amount,
  __sum AS __w
FROM (
  SELECT
    order_id,
    user_id,
    amount,
    SUM(__w) AS __sum
  FROM (
    SELECT
      order_id,
      user_id,
      amount,
      __w
    FROM (
      SELECT
        order_id AS order_id,
        user_id AS user_id,
        amount AS amount,
        __w
      FROM __refresh_bronze_orders
    ) AS t
    WHERE
      amount > 5
  ) AS t
  GROUP BY
    order_id,
    user_id,
    amount
) AS t
WHERE
  __sum <> 0;

-- the rows to delete (-) from and insert (+) into gold.joined@0, merged as multisets
SELECT
  order_id,
  segment,
  __sum AS __w
FROM (
  SELECT
    order_id,
    segment,
    SUM(__w) AS __sum
  FROM (
    SELECT
      order_id__2 AS order_id,
      segment__2 AS segment,
      __w
    FROM (
      SELECT
        order_id AS order_id__2,
        segment AS segment__2,
        __w
      FROM (
        SELECT
          order_id,
          user_id,
          amount,
          segment,
          user_id__2,
          __w
        FROM (
          SELECT
            order_id,
            user_id,
            amount,
            __w,
            segment,
            user_id__2
          FROM (
            SELECT
              order_id,
              user_id,
              amount,
              __w
            FROM __refresh_change_1
          ) AS t1
          INNER JOIN (
            SELECT
              segment AS segment,
              user_id AS user_id__2
            FROM delta.`PROJECT/data/users` VERSION AS OF 0
          ) AS t2
            ON user_id__2 = user_id
        ) AS t
      ) AS t
    ) AS t
  ) AS t
  GROUP BY
    order_id,
    segment
) AS t
WHERE
  __sum <> 0;

-- The demo's shop. Safe to run again: nothing that exists is changed.
--
-- REPLICA IDENTITY FULL puts the whole old row into every update and delete, so that a change
-- event is complete by itself, also where an unchanged long text was not written again.

CREATE TABLE IF NOT EXISTS users (
  user_id BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  email TEXT NOT NULL,
  country TEXT NOT NULL,
  segment TEXT NOT NULL,
  tier TEXT NOT NULL,
  signed_up_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE IF NOT EXISTS products (
  product_id BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  category TEXT NOT NULL,
  price NUMERIC(12, 2) NOT NULL CHECK (price >= 0),
  updated_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE IF NOT EXISTS titles (
  title_id BIGINT PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  genre TEXT NOT NULL,
  duration_seconds INT NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE IF NOT EXISTS orders (
  order_id BIGINT PRIMARY KEY,
  user_id BIGINT NOT NULL REFERENCES users,
  product_id BIGINT NOT NULL REFERENCES products,
  status TEXT NOT NULL,
  amount NUMERIC(12, 2) NOT NULL CHECK (amount >= 0),
  created_at TIMESTAMPTZ NOT NULL,
  updated_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE IF NOT EXISTS order_items (
  order_id BIGINT NOT NULL REFERENCES orders,
  line INT NOT NULL,
  product_id BIGINT NOT NULL REFERENCES products,
  quantity INT NOT NULL,
  unit_price NUMERIC(12, 2) NOT NULL,
  PRIMARY KEY (order_id, line)
);

ALTER TABLE users REPLICA IDENTITY FULL;
ALTER TABLE products REPLICA IDENTITY FULL;
ALTER TABLE titles REPLICA IDENTITY FULL;
ALTER TABLE orders REPLICA IDENTITY FULL;
ALTER TABLE order_items REPLICA IDENTITY FULL;

-- Numbers the runs of the load generator, so that no two of them share an id.
CREATE SEQUENCE IF NOT EXISTS load_runs;

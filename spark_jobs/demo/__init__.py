"""The demo's world: a shop with a video catalogue, and the load on it."""

"""Executors start runs on nodes and see how they end: `protocol` is what all of them speak."""

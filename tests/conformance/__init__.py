"""Facts about Armada's retry system as data, and a runner for each file that Tack answers to."""

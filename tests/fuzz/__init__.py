"""Doors tried with generated input. `TACK_FUZZ=20` tries twenty times as much as a usual run does."""

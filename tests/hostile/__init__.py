"""Every door, tried with what nobody honest sends: one clear error, soon, and nothing is stored."""

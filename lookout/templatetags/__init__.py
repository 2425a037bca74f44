"""Template tags: signs (state, category, verdict), pictures (trail, course, meters), figures (times, amounts)."""

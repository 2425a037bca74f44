"""Paths and shapes of Armada, for scripts and interfaces that were written for it."""

"""Tests of Tack: where each one goes is said in docs/contributing.md."""

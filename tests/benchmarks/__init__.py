"""Benchmarks: `./tack bench NAME`. Each measures a whole Tack from outside and says whether a promise holds."""

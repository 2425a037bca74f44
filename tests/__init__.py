"""Tests of Tack, fast folders first.

- `policies`, `conformance`, `architecture`, `cli`: pure, or with a small server of their own.
- `scheduler`, `api`, `pages`: verbs, JSON and HTML on a real PostgreSQL that starts itself.
- `executors`: agents, runners and real processes. `bootstrap`: `./tack` and whole starts of `tack up`.
- `journeys`: the whole product, with a browser. `benchmarks` measure and are no tests.
"""

"""The out-of-memory story: told step by step, with the `tack` command line, on a Tack that runs.

- `telling`: the story. `policy.yaml` and `job.yaml` are what it sends, to be read and sent again by hand.
- `checking`: the story on a Tack of its own in a scratch folder, verified from outside (`tack up --check`).
- `command_line`: the program `tack` as a person would call it.
"""

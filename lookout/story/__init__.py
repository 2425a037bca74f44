"""Stories: told step by step, with the `tack` command line, on a Tack that runs.

- `telling`: a job that needs more memory. `policy.yaml` and `job.yaml` are what it sends, to be read and sent again by hand.
- `disk`: a job that is moved away from the node it failed on, until no node is left.
- `lost_agent`: an executor that falls silent; `second_agent` is the one it happens to.
- `narrating`: what they share: make, submit, follow, and say each of it.
- `checking`: all of them on a Tack of its own in a scratch folder, verified from outside (`tack up --check`).
- `command_line`: the program `tack` as a person would call it.
"""

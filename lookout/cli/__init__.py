"""The command line `tack`: each command is one call of `lookout.client` and the words for what came of it.

- `main`: the program, its exit codes and how errors are told. `words`: create, update, delete, get and their options.
- `retry_policies`, `queues`, `jobs`, `watch`, `login`, `resources` (files of any kind): the commands.
- `files`: reading files strictly, problems with file, line and path. `printing`: tables, YAML, JSON, ages, sizes.

It knows nothing but HTTP and the pure documents of `policies`: neither Django nor the scheduler.
"""

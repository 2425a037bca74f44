"""The scheduler: it does what the policies decide.

Tables of queues, jobs, runs and policies; the verbs that change them, one transaction each; the reads that
pages and programs share. Rounds place queued jobs, leases hand them to executors, reports bring their ends,
settling decides about failed runs and carries the decision out.

Who may call whom: `tasks` and the entry points of `lookout` call verbs and reads; verbs never call each
other; verbs and reads use `models`; everything may use the values (`states`, `placement`, `planning`,
`config`, `actors`, `executors.protocol`). `agent` and `executors` know neither Django nor the tables.
"""

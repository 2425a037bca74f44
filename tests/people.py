"""The people of the stories, as the verbs know them."""

from scheduler.actors import Actor, Role

ALICE = Actor(name="alice", permissions=Role.SUBMITTER.permissions, groups=frozenset({"data"}))
"""Submits jobs, and owns the queues the factories make."""
OLGA = Actor(name="olga", permissions=Role.OPERATOR.permissions, groups=frozenset({"operators"}))
"""Operates everything."""
BOB = Actor(name="bob", permissions=Role.READER.permissions, groups=frozenset({"research"}))
"""Belongs to another queue."""

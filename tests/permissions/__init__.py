"""Who may do what: one table, tested at every door, from which the reference of permissions is written."""

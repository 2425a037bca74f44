"""What `lookout.client` is made of: addresses and tokens, one HTTP connection, answers as values, event streams.

Nothing here knows Django or the scheduler; callers import `lookout.client`, which hands on the public names.
"""

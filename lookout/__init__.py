"""lookout shows: the Django project of Tack, and an app for what belongs to people.

- `settings`, `urls`, `celery`, `wsgi`: the project; the environment is read in `settings` and nowhere else.
- `pages`: HTML for people. `api`: REST for programs and the agents. `cli` and `client`: the command line and
  the Python client, which know nothing but HTTP. `embedded`: the supervisor of `tack up`. `story`: the
  stories that `tack up`, `tack demo` and `tack up --check` tell.

An entry point turns one call from outside into one verb or one read of `scheduler`. Nobody imports `lookout`;
pages, API and command line never import each other.
"""

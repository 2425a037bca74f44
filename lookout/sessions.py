"""Sessions in the database, whose keys are looked up only when they can be keys.

A cookie is whatever a browser sends. Django takes any eight characters for a key; some of them, a NUL for one, no
query can hold.
"""

from django.contrib.sessions.backends import db

_LONGEST = 40


class SessionStore(db.SessionStore):
    """Django's sessions in the database. A key nobody of us made is nobody's session."""

    def _validate_session_key(self, key: str | None) -> bool:
        return bool(key) and str(key).isascii() and str(key).isalnum() and 8 <= len(str(key)) <= _LONGEST

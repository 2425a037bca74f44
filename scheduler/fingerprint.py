"""Fingerprints of errors: the same text but for numbers, ids and addresses has the same fingerprint."""

import hashlib
import re

_FOLDED = re.compile(
    r"""
    [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}  # uuids
    | \b[0-9a-hjkmnp-tv-z]{26}\b                                   # ulids
    | \b0x[0-9a-f]+\b                                              # addresses in memory
    | \b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b                         # addresses of machines
    | \b[0-9a-f]{12,}\b                                            # digests
    | \d+                                                          # whatever counts
    """,
    re.VERBOSE | re.IGNORECASE,
)
LOOKED_AT = 4_096
"""Characters of the text that count; what follows rarely tells errors apart."""


def fingerprint(text: str) -> str:
    """32 hexadecimal digits; empty for an empty text."""
    folded = " ".join(_FOLDED.sub("#", text[:LOOKED_AT]).split())
    return hashlib.md5(folded.encode(), usedforsecurity=False).hexdigest() if folded else ""

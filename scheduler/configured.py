"""The configuration of this process, read once from the file and environment that the settings name."""

import os
from functools import cache
from pathlib import Path

from django.conf import settings

from scheduler.config import Configuration, load_configuration


@cache
def configuration() -> Configuration:
    """The configuration. Raises ConfigurationInvalid; it stays what it was until the process restarts."""
    path = Path(settings.TACK_CONFIG) if settings.TACK_CONFIG else None
    return load_configuration(path, os.environ)

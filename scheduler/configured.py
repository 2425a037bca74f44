"""The configuration of this process, read once from the file and environment that the settings name."""

import logging
import os
from functools import cache
from pathlib import Path

from django.conf import settings

from scheduler.config import Configuration, load_configuration

log = logging.getLogger(__name__)


@cache
def configuration() -> Configuration:
    """The configuration. Raises ConfigurationInvalid; it stays what it was until the process restarts."""
    path = Path(settings.TACK_CONFIG) if settings.TACK_CONFIG else None
    return load_configuration(path, os.environ)


def check_at_start() -> None:
    """Read it before anything is done, and log what is legal and surprising. Raises ConfigurationInvalid."""
    for warning in configuration().warnings:
        log.warning("%s", warning)

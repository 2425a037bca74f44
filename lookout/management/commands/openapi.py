"""`./tack manage openapi`: print the description of the REST API."""

import json
from typing import Any

from django.core.management.base import BaseCommand

from lookout.api.v1.openapi import openapi


class Command(BaseCommand):
    """Prints JSON on standard output: what /api/v1/openapi.json answers."""

    help = "Print the description of the REST API as OpenAPI."
    requires_system_checks = ()

    def handle(self, *_: Any, **options: Any) -> None:
        self.stdout.write(json.dumps(openapi(), indent=1, ensure_ascii=False))

"""Commands that need the database, and say so in a sentence where it does not answer."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError

from lookout.access import NameInvalid


class ServerCommand(BaseCommand):
    """A command for whoever may read the server's settings: it asks nobody for permission."""

    requires_system_checks = ()

    def execute(self, *args: Any, **options: Any) -> Any:
        """Run it. A database that is away or without tables is no fault of the command."""
        try:
            return super().execute(*args, **options)
        except NameInvalid as error:
            raise CommandError(str(error)) from error
        except UnicodeEncodeError as error:
            raise CommandError("What was said holds bytes that are no UTF-8 text. Write it again.") from error
        except (DatabaseError, InterfaceError) as error:
            raise CommandError(
                f"The database does not answer as it should ({str(error).strip().splitlines()[0]}). Start Tack with"
                " ./tack up, or set DATABASE_URL as for the server and run ./tack manage migrate."
            ) from error

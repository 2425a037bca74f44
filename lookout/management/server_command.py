"""Commands that need the database, and say so in a sentence where it does not answer."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, InterfaceError

from lookout.access import NameInvalid


class Error(CommandError):
    """A reason not to do it. The name of the class is the word before the sentence, as `tack` has it everywhere."""


class ServerCommand(BaseCommand):
    """A command for whoever may read the server's settings: it asks nobody for permission."""

    requires_system_checks = ()
    # They are taken all the same; whoever wants them knows them.
    suppressed_base_arguments = {  # noqa: RUF012  as the framework has it
        "--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color", "--force-color",
    }  # fmt: skip

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Named as the word that people say: `tack person`."""
        return super().create_parser(prog_name.removesuffix(" manage"), subcommand, **kwargs)

    def execute(self, *args: Any, **options: Any) -> Any:
        """Run it. A database that is away or without tables is no fault of the command."""
        try:
            return super().execute(*args, **options)
        except (NameInvalid, CommandError) as error:
            raise Error(str(error)) from error
        except UnicodeEncodeError as error:
            raise Error("What was said holds bytes that are no UTF-8 text. Write it again.") from error
        except (DatabaseError, InterfaceError) as error:
            raise Error(
                f"The database does not answer as it should ({str(error).strip().splitlines()[0]}). Start Tack with"
                " ./tack up, or set DATABASE_URL as for the server and run ./tack manage migrate."
            ) from error

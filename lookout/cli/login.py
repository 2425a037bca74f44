"""`login`: another link that signs in to the dashboard."""

import click

from lookout.cli import words


@click.command("login", cls=words.Command)
def login() -> None:
    """Print a link that signs in to the dashboard.

    It works once, within ten minutes.
    """
    click.echo(words.client().sign_in_link())

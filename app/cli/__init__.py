"""The command line."""

from app.cli.last_word import install_last_word


def main() -> None:
    """Entry point of the ``celosia`` command."""
    install_last_word()
    # Imported only now: an interruption or a fault while the rest is being loaded has its words too.
    from app.cli.main import run_command

    run_command()


__all__ = ["main"]

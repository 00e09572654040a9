"""The command `kata`: finds the subcommand, and turns every ending into a message and an exit code.

Subcommands are imported when they are called, so that none pays for another's imports. torch is never imported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from checker import __version__
from checker.errors import INTERRUPTED

COMMANDS = {
    "list": "checker.commands.ladder",
    "check": "checker.commands.check",
    "next": "checker.commands.advance",
    "watch": "checker.commands.watching",
    "hint": "checker.commands.hint",
    "debug": "checker.commands.debug",
    "compare": "checker.commands.compare",
    "inspect": "checker.commands.inspect",
    "reset": "checker.commands.reset",
    "explain": "checker.commands.explain",
    "doctor": "checker.commands.doctor",
}
"""Each command's module, in the order of `kata --help`. The module holds it as `command`."""


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order a learner meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = import_module(module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A command that does not exist gets the nearest name."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in COMMANDS:
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
            ctx.fail(
                f"There is no command {name!r}."
                + (f" Did you mean `kata {near[0]}`?" if near else "")
                + f"\nCommands: {', '.join(COMMANDS)}."
            )
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kata")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Learn Triton by katas whose check tells the truth, with or without a GPU.

    Without a command: where you are, and what to do next. KATA is a number, an id or a part of one.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand is None:
        from checker.commands.status import show

        show()


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 passed, 1 not passed, 2 usage, 3 environment, 130 interrupted."""
    try:
        outcome = cli.main(args=None if arguments is None else list(arguments), prog_name="kata", standalone_mode=False)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nInterrupted. Nothing was lost.", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe has seen enough. Python would complain when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return outcome if isinstance(outcome, int) else 0


def main() -> None:
    """Entry point of the script `kata`."""
    sys.exit(run())

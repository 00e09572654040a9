"""The exceptions that become a message and an exit code.

click.UsageError (exit 2)
└── KataUsageError      what was given, what is needed, what to do next
click.ClickException
└── EnvironmentProblem  (exit 3) the machine lacks something; the learner's file is not at fault
"""

from __future__ import annotations

from typing import IO, Any

import click

PASSED, NOT_PASSED, USAGE, ENVIRONMENT, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit codes of `kata`."""


class KataUsageError(click.UsageError):
    """The command cannot be carried out as given.

    The three parts are kept apart so that each error says all three: what was given, what is needed, what to do next.
    """

    def __init__(self, given: str, *, needed: str = "", next_step: str = "") -> None:
        self.given, self.needed, self.next_step = given, needed, next_step
        super().__init__("\n".join(part for part in (given, needed, next_step) if part))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message alone: the command was well formed, so its usage line would only be noise."""
        click.echo(f"Error: {self.format_message()}", file=file, err=file is None)


class EnvironmentProblem(click.ClickException):
    """The machine lacks something that a check needs: exit 3, never the learner's fault."""

    exit_code = ENVIRONMENT

"""The commands of `kata`, one module each: parse, call, print, exit code. `checker.cli` loads them by name."""

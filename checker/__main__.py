"""`python -m checker` is `kata`, for where the script is not on the path."""

from checker.cli import main

main()

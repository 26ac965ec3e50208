"""`python -m cognicraft` is the command line."""

from cognicraft.cli.main import run

run()

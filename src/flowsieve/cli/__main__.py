"""`python -m flowsieve.cli`: the command line, where it is not installed as a command."""

from flowsieve.cli.main import main

main()

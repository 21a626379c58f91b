"""``python -m lockstep.cli`` is the command ``lockstep``."""

from lockstep.cli.main import program

program()

"""The command ``lockstep``: a file for each command, and what they share. It sees all other folders; none sees it."""

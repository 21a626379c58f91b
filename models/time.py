"""Time in the model: whole core cycles (``memory/clock.py`` says how parts with other clocks count)."""

NEVER = 1 << 62
"""A cycle that does not come: when to wake what waits for something else; as a number of steps, for ever."""

"""The chapters that ``lockstep reproduce`` knows: a module each, with a ``CHAPTER``."""

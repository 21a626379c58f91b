"""The chapters that ``lockstep reproduce`` knows: a module or a package each, with a ``CHAPTER``."""

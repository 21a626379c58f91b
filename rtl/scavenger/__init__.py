"""Blocks of Scavenger (Kloosterman's thesis, chapter 5)."""

"""Scavenger (Kloosterman's thesis, chapter 5): two kernels on one SM, one of them with a performance target."""

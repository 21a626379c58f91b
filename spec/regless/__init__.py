"""RegLess (Kloosterman's thesis, chapter 4). The encoding of its metadata is in ``spec/register_regions.py``."""

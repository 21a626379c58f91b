"""Power of kernels from their characteristics, as in chapter 3 of Chen's thesis.

A random forest, a regression tree and a linear model are fitted to the watts of some kernels. They are meant for watts
that were measured; those of the event model are marked wherever they are shown.
"""

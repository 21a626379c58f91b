"""The model beside real GPUs: every instruction that computes, and whole kernels, bit by bit.

``python -m lockstep.verif.silicon record FILE`` runs them on this machine's GPU, ``compare FILE`` on the model. The
recordings here are those that the tests compare with. ``power FILE`` records the watts that kernels draw.
"""

"""Asynchronous solvers as a study: an emulator of blocks, for step counts that the cycle model does not reach."""

"""Benches, tests and proofs of Scavenger's blocks."""

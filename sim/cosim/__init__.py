"""Co-simulation: the RTL of blocks in whole-kernel runs."""

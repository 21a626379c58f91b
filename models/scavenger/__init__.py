"""Golden models of Scavenger's blocks."""

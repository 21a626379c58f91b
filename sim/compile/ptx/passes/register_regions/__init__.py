"""Register regions: what a compiler tells hardware that stages the operands of a few instructions at a time."""

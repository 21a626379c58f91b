"""Trial tenants: one for every frame slot, as the smallest mechanisms that can be, to test the frame with."""

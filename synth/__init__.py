"""From a block's RTL to cells, area, depth and state, beside the figures of the paper that describes it."""

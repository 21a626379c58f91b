"""The sizes that a kernel's input may have; ``lockstep.sim.kernels`` says what they are."""

USUAL_SIZES = ("tiny", "small", "full")  # that a kernel has unless it says otherwise
SIZES = (*USUAL_SIZES, "steady", "scattered", "4096", "reference")

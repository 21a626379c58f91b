"""Co-simulation: the RTL of blocks in whole-kernel runs, checked against their golden models.

``lockstep.sim.cosim.run.cosim(job, rtl="warppool")`` runs a kernel, and says what comes back.
"""

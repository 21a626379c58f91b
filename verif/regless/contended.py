"""A kernel with a quarter of the registers that ship, so that values leave the staging units and come back."""

CONTENDED = (("regless", "hotspot", {"core.sms": 1, "regless.registers": 128}),)

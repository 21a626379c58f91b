"""Many runs: axes and their product (``axes``), where it is run (``schedulers``), what is kept (``runner``), what is
shown (``table``), and the commands `compare` and `sweep` (``commands``).
"""

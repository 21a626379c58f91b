"""What instructions compute, without when they do it (``models/core``).

The letters are those of the micro-operations (``isa``): ``x`` is the context (``isa.CONTEXT``), the warp that executes;
``a``, ``b``, ``c`` and ``d`` are the fetched sources, a value per lane, and ``r`` is the result before it is written.
"""

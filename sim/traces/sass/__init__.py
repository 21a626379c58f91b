"""Traces of machine code, SASS, as Accel-Sim's tracer writes them: read, and made traces of Lockstep's own format."""

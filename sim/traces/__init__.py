"""Traces: what the warps of a kernel executed, recorded once, replayed under any configuration (``docs/traces.md``)."""

"""Runs of kernels as results: made, kept, swept over, compared, and shown on pages."""

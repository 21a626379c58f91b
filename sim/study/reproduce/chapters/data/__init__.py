"""Figures that chapters compare with, and kernels of their own."""

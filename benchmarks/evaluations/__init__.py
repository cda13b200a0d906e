"""Measures time and memory in comparison with the plain loop of benchmarks/plain.py."""

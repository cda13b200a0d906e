"""Compares time and memory of the loss modes with the plain loop of benchmarks/plain.py."""

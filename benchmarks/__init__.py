"""Measurements that print ratios taken in one run; each is a script of its own."""

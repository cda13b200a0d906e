"""Reads and writes pictures, and works on their colours, sizes and regions."""

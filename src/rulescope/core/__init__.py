"""Shared basics: errors, arrays and files on disk, seeds, structs, signals, runtime identity."""

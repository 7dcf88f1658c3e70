"""Stress tests of campaigns and stores: kills, disk errors, damaged files, many writers.

Each part is a module with a function ``torture``. The tests call it at a small size, and ``python
scripts/torture`` (see ``torture_main``) at full size. The program under test is not modified: its
processes are killed, its disk fails, or its files are damaged.
"""

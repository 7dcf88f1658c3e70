"""Shared basics, none of which knows about learners or worlds.

- ``errors``: errors with messages for users; ``structs``: specification parts and their decoding
- ``seeds``: random streams, initial distributions; ``arrays``, ``flat_vector``: named arrays
- ``disk``: files and folders; ``entry_points``: plug-ins; ``signals``: Ctrl-C
- ``source_hash``, ``runtime``: identity of the program and of the machine
"""

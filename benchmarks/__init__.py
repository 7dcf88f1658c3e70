"""Benchmarks of a lifetime's speed: ``python -m benchmarks``.

- ``bench_command``: the command and its tables
- ``measurement``: how much is measured, and medians with quartiles
- ``disco_comparison``: Disco against disco-torch (``disco_torch_peer``) and the time of its matrix
  products alone (``matmul_limit``), with ``timed_lifetime`` and ``peak_memory``
- ``sb3_comparison``: a baseline against Stable-Baselines3 (``sb3_peer``)
- ``peer_process``: the process that a peer runs in
"""

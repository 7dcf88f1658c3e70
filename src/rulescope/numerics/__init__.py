"""Numerical parity with the original JAX program.

- ``golden``: stored arrays of the original; ``tolerances``: comparisons and their tolerances;
- ``output_parity``, ``update_parity``: families of comparisons;
- ``parity_table``: all families; ``parity_summary``: the published table with our numbers;
- ``jax_reference``: the original program itself, on fresh inputs.
"""

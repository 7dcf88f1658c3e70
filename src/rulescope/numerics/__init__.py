"""Numerical parity with the original JAX program.

- ``golden``: stored arrays of the original; ``tolerances``: comparisons and their tolerances;
- ``output_parity``, ``update_parity``: kinds of comparisons;
- ``parity_checks``: all checks; ``parity_table``: the published table with our numbers;
- ``jax_reference``: the original program itself, on fresh inputs.
"""

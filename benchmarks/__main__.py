"""``python -m benchmarks``: see :mod:`benchmarks.bench_command`."""

import typer

from benchmarks.bench_command import bench

typer.run(bench)

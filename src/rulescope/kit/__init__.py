"""Building blocks for rules of other packages; docs/plugins.md describes each ("The kit").

- Carriers of torch objects: :func:`tensors_carrier`, :func:`module_carrier`,
  :func:`optimiser_carrier`, and :func:`join_carriers` to make one of several.
- Random numbers from named streams: :func:`torch_random`, :func:`sample_actions`.
- A rollout with the outputs of a network of your own: :func:`see`.
- Losses that are written in JAX: :class:`JaxLoss`, which gets a :class:`JaxSeen`.
"""

from rulescope.kit.jax_loss import JaxLoss, JaxSeen
from rulescope.kit.network_outputs import see
from rulescope.kit.optimiser_state import optimiser_carrier
from rulescope.kit.random_draws import sample_actions, torch_random
from rulescope.kit.tensor_carriers import join_carriers, module_carrier, tensors_carrier

__all__ = [
    "JaxLoss",
    "JaxSeen",
    "join_carriers",
    "module_carrier",
    "optimiser_carrier",
    "sample_actions",
    "see",
    "tensors_carrier",
    "torch_random",
]

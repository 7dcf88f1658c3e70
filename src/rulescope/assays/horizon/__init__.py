"""Long lifetimes: F2, and the learning rates of the baselines (E-LR)."""

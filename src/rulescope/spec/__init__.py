"""A lifetime as data: worlds, learners, interventions, and the run specification made of them."""

"""Inheritance: whose state a learner starts from (E2), and which directions of it matter."""

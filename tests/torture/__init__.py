"""What a campaign must survive, done to it on purpose.

The modules beside the tests are the tools: the tests use them at a small size, and ``python
scripts/torture`` (see ``main``) at full size. Nothing of it is in the product, which is disturbed
from outside only: killed, starved of disk, or damaged while it sleeps.
"""

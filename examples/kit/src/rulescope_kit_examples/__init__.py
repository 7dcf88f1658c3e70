"""Four rules for Rulescope that use its kit, to copy and change."""

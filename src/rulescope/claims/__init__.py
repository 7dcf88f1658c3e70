"""The claims of the published audit: a ledger, verdicts from records, and what to run next."""

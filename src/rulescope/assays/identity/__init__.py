"""Which agent made which published cohort, and what depends on the indexing convention."""

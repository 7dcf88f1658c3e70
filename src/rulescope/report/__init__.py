"""Results on disk: figures of lifetimes, results folders of assays, and the report site."""

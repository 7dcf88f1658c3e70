"""Numbers and tables in the Markdown pages, filled in from records, code and measurements."""

"""The pages of a report: plain data in, HTML out."""

"""A store as a report: static HTML pages that open from disk, the same bytes every time."""

from rulescope.report.site.builder import gather, require_replaceable, summary, write

__all__ = ["gather", "require_replaceable", "summary", "write"]

"""How tables and figures look: style, table formats, line labels, files."""

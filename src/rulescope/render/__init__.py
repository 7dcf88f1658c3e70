"""Tables and figures: style, table formats, line labels, files, charts in the terminal."""

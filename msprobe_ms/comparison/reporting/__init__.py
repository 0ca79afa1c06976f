"""Report a comparison: tables, colours, the lines of the terminal, advice."""

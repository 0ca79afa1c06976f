"""Living beside msprobe: its import name, and what to say when it is installed too."""

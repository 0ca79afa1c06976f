"""What a debugger watches over many steps, beside or instead of a dump."""

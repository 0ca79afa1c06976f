"""What of msprobe_ms works in this place, and what to do about what does not: packages, frameworks, disk."""

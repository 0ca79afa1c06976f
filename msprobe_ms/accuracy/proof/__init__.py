"""Which side of a call that differs is wrong, and by what: experiments with one recorded call, run alone."""

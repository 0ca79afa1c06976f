"""Compare two dumps: pair, measure, find the origin of the error, report. Offline; needs no framework."""

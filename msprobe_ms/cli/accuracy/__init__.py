"""Commands that judge single calls: two devices beside each other, one call that is proved right or wrong."""

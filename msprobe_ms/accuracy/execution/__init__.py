"""Running calls: processes that hold a framework each, what is asked of them, the journal, the whole dump."""

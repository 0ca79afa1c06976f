"""Task free_benchmark: calls of APIs are made once more with arguments a little different, and the results compared."""

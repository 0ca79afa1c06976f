"""What compiled graphs of MindSpore leave on disk: raw kernel files → an index, statistics, tables, the first bad."""

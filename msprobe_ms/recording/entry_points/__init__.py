"""Ways to record without a debugger in the script: ``msprobe run``, a ``with`` block, and its view in a notebook."""

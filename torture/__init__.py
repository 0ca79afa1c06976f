"""Tools that are hard on msprobe_ms: faults to find, trainings to kill, disks that fail, bits and bytes to count.

Each tool is its cases and what judges them; `harness` runs them, `recordings` says in which ways a training is
recorded, and `nets` holds what is trained.
"""

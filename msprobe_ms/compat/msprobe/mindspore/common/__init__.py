"""Where msprobe keeps ``MsprobeStep``."""

"""A dump as Python looks at it: what ``msprobe_ms.load`` and ``msprobe_ms.record`` give. No framework is needed."""

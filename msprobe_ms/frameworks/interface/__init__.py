"""What the rest of the package asks of a framework, one module for each part of it; `base.Framework` is all of them."""

"""Design-space exploration: the figures of the paper from this toolchain's own runs, and beyond them."""

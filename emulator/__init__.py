"""Runs images in time: the fast emulator, its statistics, and the host's part of a layer."""

"""The compiler: models in, human-readable assembly out."""

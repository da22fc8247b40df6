"""The version, read by the build and by `timbal.__version__`."""

__version__ = "0.1.0"

"""frtspec: a spec language for fast regions of PyTorch models."""

__version__ = "0.1.0"

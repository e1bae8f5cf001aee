"""Optimization from mini-batches without a learning rate, with hard constraints."""

from __future__ import annotations

from strust._native import __version__

__all__ = ["__version__"]

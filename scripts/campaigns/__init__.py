"""The campaigns of `scripts/campaign`, one module each, over the cases in `cases.py`."""

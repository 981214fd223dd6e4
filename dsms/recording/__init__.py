"""Runs written down and read back: turns, arrivals, outputs, memory and phases as Parquet; and what-if on them."""

from dsms.recording.recorder import Recorder
from dsms.recording.recording import Recording, read

__all__ = ["Recorder", "Recording", "read"]

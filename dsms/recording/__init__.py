"""Records runs to Parquet: turns, arrivals, outputs, memory, phases; reads and replays them under other policies."""

from dsms.recording.recorder import RunRecorder
from dsms.recording.recording import Recording, read_recordings

__all__ = ["Recording", "RunRecorder", "read_recordings"]

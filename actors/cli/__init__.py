"""The commands by which people run the live system; Ray is loaded when one of them runs, not before."""

"""The report of a run, or of two side by side, as one HTML file that needs nothing else."""

"""The atlas: a measured walk through the ideas of attention, as one HTML file that needs nothing else."""

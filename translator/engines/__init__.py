"""Other searches behind the same interface: libraries that decode a run's model faster than torch does."""

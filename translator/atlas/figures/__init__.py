"""What the atlas shows, as plain numbers: every module has functions from the material to a dictionary."""

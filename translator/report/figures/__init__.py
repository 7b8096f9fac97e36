"""What the report shows, as plain numbers and texts: one module for each section."""

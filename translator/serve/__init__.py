"""The HTTP server, and the page with which people look at translations."""

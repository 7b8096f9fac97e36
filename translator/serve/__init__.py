"""The HTTP server: LibreTranslate's and DeepL's interfaces, one of our own, and a page."""

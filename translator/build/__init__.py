"""The one place where configuration becomes objects."""

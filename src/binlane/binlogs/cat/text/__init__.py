"""Text letter for letter as the official tools print it, each log as its own flavor's."""

"""`timbal demo`: an assistant sets up a database, and its process ends each time it asks."""

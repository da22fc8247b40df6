"""The vocabulary that goes over the wire and into records."""

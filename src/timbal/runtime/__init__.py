"""What drives a run: it asks the rules in `core` and acts on stores, models and handlers."""

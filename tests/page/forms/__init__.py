"""`<timbal-form>` by itself, for schemas of every kind."""

"""What the tests of the page serve."""

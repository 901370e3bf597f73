"""The publication's own values and rules: pure, frozen, knowing nobody."""

"""Makes task folders of other people's problem files."""

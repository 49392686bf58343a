"""Other catalogs read into specs, and specs written back for them. No torch, and nothing
of what is read is imported or run."""

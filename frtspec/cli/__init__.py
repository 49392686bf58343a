"""The command ``frtspec``. Thin: each subcommand's module is loaded when it runs."""

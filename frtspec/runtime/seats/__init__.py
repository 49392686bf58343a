"""What stands in a host while attached: modules, guards, ledgers, and the swap."""

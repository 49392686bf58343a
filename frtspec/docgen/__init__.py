"""Pages about the specs: what is declared, drawn and reckoned. Reads the IR, imports no torch."""

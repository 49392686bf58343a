"""The language server: what an editor asks while a spec is written.

Needs the extra ``lsp`` (pygls). Only ``server.py`` knows the protocol's machinery; the modules
beside it answer with the protocol's own types from plain texts and offsets.
"""

"""The contract between generated code and the runtime, as the compiler knows it.

The compiler does not import the runtime (it needs no torch); a test holds this number
against ``frtspec.runtime.spec.RUNTIME_ABI``.
"""

RUNTIME_ABI = 1

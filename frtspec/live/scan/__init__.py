"""Where structures sit on a model that nobody bound, as a draft binding."""

from frtspec.live.scan.core import scan
from frtspec.live.scan.found import Coverage, FoundSeat, LeftOut
from frtspec.live.scan.reasons import REASONS
from frtspec.live.scan.result import ScanResult

__all__ = ["REASONS", "Coverage", "FoundSeat", "LeftOut", "ScanResult", "scan"]

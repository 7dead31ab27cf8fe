"""In which logging format a statement is logged: engines, the decision, and its table.

Pure. Which binlogs a statement concerns is decided in `scope`.
"""

from binlane.policy.decision import Decision, Problem, decide
from binlane.policy.engines import Capability, capability

__all__ = ["Capability", "Decision", "Problem", "capability", "decide"]

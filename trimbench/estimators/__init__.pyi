from .conformant import MissingAsZerosWarning as MissingAsZerosWarning
from .conformant import NaiveConformantClassifier as NaiveConformantClassifier
from .expected import ExpectedClassifier as ExpectedClassifier
from .expected import UnseenGapsWarning as UnseenGapsWarning
from .selection_corrected import SelectionCorrectedNB as SelectionCorrectedNB
from .trimmed import IdentifierColumnWarning as IdentifierColumnWarning
from .trimmed import TrimmedClassifier as TrimmedClassifier

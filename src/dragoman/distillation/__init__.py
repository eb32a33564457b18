"""Makes a small and fast translator, the student, out of larger ones, the teachers. Takes runs, more text of the source
language if there is any, and a number of minutes; gives a run that learned what the teachers say, in small numbers and
with a vocabulary map where these are good enough, and a report of what was lost and gained. Touches the student's
directory, and the converted models in those of the teachers.
"""

from typing import Literal

StudentVocabulary = Literal["own", "teacher"]
Begin = Literal["scratch", "teacher"]

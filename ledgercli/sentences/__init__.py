"""Rules in plain sentences, such as `create_return only if state.facts.user_authenticated is true`.

Pure: a checked expression or a compiled rule in, sentences out. `words` are names and values, `terms` what has a value,
`conditions` what can hold, `saying` the lines, `ruling` what a rule requires of a tool.
"""

from ledgercli.sentences.ruling import ANY_CALL, Statement, active, state
from ledgercli.sentences.saying import Sentence, Speech, said

__all__ = ["ANY_CALL", "Sentence", "Speech", "Statement", "active", "said", "state"]

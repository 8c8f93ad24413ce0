"""Prompts, made from the state.

Pure. `prompter` puts them together, `standing` says the rules as they stand in a state, `relevance` what the next
decision may need, `examples` how one looks; `template` fills the template in.
"""

from ledgercli.prompting.prompter import Calls, Offer, Prompt, Prompter, Select
from ledgercli.prompting.template import STANDARD, TemplateError

__all__ = ["STANDARD", "Calls", "Offer", "Prompt", "Prompter", "Select", "TemplateError"]

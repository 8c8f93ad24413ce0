"""The words for functions: a table for what gives a value, a table for questions to the history.

Invariants:
* No phrase holds an operator, a comma or the word `and`: those tell the parts of a sentence apart.
* `{}` are the arguments in order. A kind that is not empty stands in brackets inside another value, a `phrase` also
  inside the words of a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Kind = Literal["", "noun", "sum", "product", "phrase"]

#: (function, number of arguments) → its words.
CALLS: Final[Mapping[tuple[str, int], tuple[str, Kind]]] = {
    ("type", 1): ("the type of {}", "noun"),
    ("sum", 1): ("the sum of {}", "noun"),
    ("timestamp", 1): ("the time {}", "noun"),
    ("duration", 1): ("the span {}", "noun"),
    ("bool", 1): ("{} as true or false", "phrase"),
    ("bytes", 1): ("{} as bytes", "phrase"),
    ("lowerAscii", 1): ("{} as small letters", "phrase"),
    ("upperAscii", 1): ("{} as capital letters", "phrase"),
    ("trim", 1): ("{} without spaces around it", "phrase"),
    ("reverse", 1): ("{} written backwards", "phrase"),
    ("substring", 2): ("{} without its first {} characters", "phrase"),
    ("charAt", 2): ("the character of {} at {}", "noun"),
    ("indexOf", 2): ("the first position within {} of {}", "noun"),
    ("lastIndexOf", 2): ("the last position within {} of {}", "noun"),
    ("replace", 3): ("{} with each {} replaced by {}", "phrase"),
    ("split", 2): ("the parts of {} between {}", "noun"),
    ("join", 1): ("the parts of {} joined", "noun"),
    ("join", 2): ("the parts of {} joined by {}", "noun"),
    ("math.abs", 1): ("the absolute value of {}", "noun"),
    ("math.sign", 1): ("the sign of {}", "noun"),
    ("math.sqrt", 1): ("the square root of {}", "noun"),
    ("math.ceil", 1): ("{} rounded up", "phrase"),
    ("math.floor", 1): ("{} rounded down", "phrase"),
    ("math.round", 1): ("{} rounded", "phrase"),
    ("math.trunc", 1): ("{} without its fraction", "phrase"),
    ("getFullYear", 1): ("the year of {}", "noun"),
    ("getMonth", 1): ("the month of {} from 0", "noun"),
    ("getDate", 1): ("the day of the month of {}", "noun"),
    ("getDayOfMonth", 1): ("the day of the month of {} from 0", "noun"),
    ("getDayOfWeek", 1): ("the day of the week of {} from Sunday as 0", "noun"),
    ("getDayOfYear", 1): ("the day of the year of {} from 0", "noun"),
    ("getHours", 1): ("the hours of {}", "noun"),
    ("getMinutes", 1): ("the minutes of {}", "noun"),
    ("getSeconds", 1): ("the seconds of {}", "noun"),
    ("getFullYear", 2): ("the year of {} by the clock of {}", "noun"),
    ("getMonth", 2): ("the month from 0 of {} by the clock of {}", "noun"),
    ("getDate", 2): ("the day of the month of {} by the clock of {}", "noun"),
    ("getDayOfWeek", 2): ("the day of the week from Sunday as 0 of {} by the clock of {}", "noun"),
    ("getHours", 2): ("the hours of {} by the clock of {}", "noun"),
    ("getMinutes", 2): ("the minutes of {} by the clock of {}", "noun"),
}

#: A question to the history whose answer is a value → its words; the tool stands first.
ASKED: Final[Mapping[str, str]] = {
    "count_calls": "the number of calls of {}",
    "count_failures": "the number of failures of {}",
    "count_recent_failures": "the number of consecutive failures of {}",
    "count_denied": "the number of denials of {}",
    "repeats": "the number of consecutive calls of {}",
    "steps_since": "the number of steps since {} ran",
    "last_result": "the last result of {}",
    "last_args": "the last arguments of {}",
    "sum_args": "the sum of {1} over successful calls of {0}",
    "distinct_args": "the number of different {1} over successful calls of {0}",
}

#: What is true or false → the words for both.
TELLS: Final[Mapping[tuple[str, int], tuple[str, str]]] = {
    ("startsWith", 2): ("{} begins with {}", "{} does not begin with {}"),
    ("endsWith", 2): ("{} ends with {}", "{} does not end with {}"),
    ("contains", 2): ("{} contains {}", "{} does not contain {}"),
    ("matches", 2): ("{} matches the pattern {}", "{} does not match the pattern {}"),
    ("from_task", 1): ("the task names {}", "the task does not name {}"),
    ("from_user", 1): ("a user has named {}", "no user has named {}"),
    ("from_tool", 2): ("a result of {1} names {0}", "no result of {1} names {0}"),
    ("succeeded", 2): ("{} has succeeded", "{} has never succeeded"),
    ("confirmed", 2): ("a person has confirmed {} since it last ran", "no person has confirmed {} since it last ran"),
}

#: A comparison → its words, and those of its opposite; of numbers, and of what has an order in time or text.
NUMBERS: Final[Mapping[str, str]] = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least"}
MOMENTS: Final[Mapping[str, str]] = {"<": "before", "<=": "at or before", ">": "after", ">=": "at or after"}
OPPOSITE: Final[Mapping[str, str]] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}

"""Finds code in running text: spreadsheet and TeX formulas, key combinations, paths and names of files.

It takes linear time: each pattern is tried only at characters that it can begin with, and reads on once.
"""

import re
from itertools import accumulate

_MODIFIERS = "Ctrl|Control|Strg|AltGr|Alt|Shift|Umschalt|Maj|Cmd|Command|Option|Opt|Windows|Win|Super|Meta|Fn|[⌘⌥⇧⌃⊞]"
_NAMED_KEYS = (
    "Enter|Return|Escape|Esc|Tab|Space|Spacebar|Backspace|Delete|Del|Insert|Ins|Home|End|PageUp|PageDown|PgUp|PgDn|"
    "Page Up|Page Down|Up|Down|Left|Right|PrintScreen|PrtSc|Break|Pause|Plus|Minus|Click"
)
_FUNCTION_KEY = r"F(?:1\d|2[0-4]|[1-9])(?![\w])"
_KEY = rf"(?:{_FUNCTION_KEY}|(?:{_MODIFIERS}|{_NAMED_KEYS})(?!\w)|[A-Za-z0-9](?!\w)|[←↑→↓,./;'\[\]\\`=*-])"
# A hyphen joins words too, so it joins keys only before a single character or a function key.
_KEYS = re.compile(
    rf"(?<![\w+-])(?:{_MODIFIERS})(?: ?\+ ?{_KEY})+"
    rf"|(?<![\w+-])(?:Ctrl|Strg|Alt|Shift|Cmd)-(?:{_FUNCTION_KEY}|[A-Za-z0-9](?![\w'’-]))"
    rf"|(?<![\w])[⌘⌥⇧⌃]{{1,4}}[A-Z0-9](?!\w)|(?<![\w/.-]){_FUNCTION_KEY}(?!['’.-]?\w)"
)

# The characters of a name in a path; a path does not end with the punctuation of its sentence.
_NAME = r"[\w.+@%#~$-]"
_PATH_END = r"(?<![.,;:!?])"
_EXTENSIONS = (
    "asm|avi|bak|bash|bat|bib|bin|bmp|bz2|cfg|cmd|conf|cpp|cs|css|csv|dat|deb|dll|doc|docx|dylib|eps|epub|exe|flac|gif|"
    "gz|hpp|htm|html|ico|ini|ipynb|iso|jar|java|jpeg|jpg|js|json|jsonl|jsx|kt|less|lock|log|lua|md|mkv|mo|mov|mp3|mp4|"
    "msi|odp|ods|odt|ogg|pdf|php|png|po|pot|ppt|pptx|properties|ps1|py|pyc|rar|rb|rpm|rst|rtf|scss|sh|sql|srt|svg|tar|"
    "tex|tgz|tiff|tmp|tmx|toml|ts|tsv|tsx|ttf|txt|vtt|wav|webm|webp|whl|woff|xls|xlsx|xml|xz|yaml|yml|zip|zsh"
)
_ROOTS = (
    "Applications|Library|System|Users|Volumes|bin|boot|dev|etc|home|lib|lib32|lib64|media|mnt|opt|proc|root|run|sbin|"
    "srv|sys|tmp|usr|var"
)
_SPACED = r"Program Files(?: \(x86\))?|Documents and Settings"
_PATHS = re.compile(
    # C:\Users\x, \\server\share
    rf"(?<!\w)(?:[A-Za-z]:[\\/]|\\\\(?=\w))(?:{_SPACED}|[^\s:*?\"<>|,;()\[\]{{}}«»“”‘’'])*{_PATH_END}"
    # ~/x, ./x, ../x
    rf"|(?<![\w.~/])(?:~|\.\.?)/(?:{_NAME}|/|\*)*{_PATH_END}"
    # /usr/lib/x, /etc; not </b>, //, nor the second half of and/or
    rf"|(?<![\w/<.)\]}}~\\])/(?:(?:{_ROOTS})(?![\w])(?:{_NAME}|/|\*)*|{_NAME}+/(?:{_NAME}|/|\*)*){_PATH_END}"
    # src/main.py, main.py
    rf"|(?<![\w/.@:~$\\+%#-])[\w-](?:{_NAME}|/)*\.(?:{_EXTENSIONS})(?![\w/@-]|\.\w)"
)

_TEX = re.compile(
    r"\$\$(?!\$)[^$]+\$\$|\\\((?:[^\\]|\\[^()\[\]])+\\\)|\\\[(?:[^\\]|\\[^()\[\]])+\\\]"
    # As Pandoc has it: no space after the first dollar nor before the last; but ${x} and %1$s are placeholders.
    r"|(?<![\\$\w])\$(?![\s${])(?:[^$\\]|\\.)+(?<!\s)\$(?![\w$])",
    re.DOTALL,
)
_MATHEMATICAL = re.compile(r"[\\^_={}<>]|\A[A-Za-z]\Z|[\w)\s][-+*/][\w(\s]")
_WORD = re.compile(r"[^\W\d_]{3,}")
# x^2, E=mc^2: a word with a power in it.
_POWER = re.compile(r"[\w)\]}]\^[\w({-]")
_CELLS = re.compile(r"(?<![\w=<>!+*/-])=(?=[A-Z][A-Z0-9.]*\(|\$?[A-Z]{1,3}\$?\d|\()")
_CELL_OPERAND = re.compile(r"[-+]*(?:\$?[A-Z]{1,3}\$?\d+(?::\$?[A-Z]{1,3}\$?\d+)?|\d+(?:\.\d+)?%?|\"[^\"]*\")(?!\w)")
_CELL_FUNCTION = re.compile(r"[-+]*(?:[A-Z][A-Z0-9.]*)?\(")
_CELL_OPERATOR = re.compile(r"\s?(?:<>|<=|>=|[-+*/^&=<>])\s?")
_CELL_ARGUMENT = re.compile(r"[,;]\s?")


# Marks between and after words, of which no code, address, number or symbol is made.
_BETWEEN_WORDS = str.maketrans(dict.fromkeys(" ,;:!?'\"’“”„‘«»…–—\u00a0\u202f"))


def is_plain(text: str) -> bool:
    """Tells whether a text has only words with spaces and marks between them, as most sentences have: then it holds no
    code, nor anything else that must be copied. A point counts as a mark before a space and at the end."""
    return text.removesuffix(".").replace(". ", " ").translate(_BETWEEN_WORDS).isalpha()


def code_spans(text: str) -> list[tuple[int, int]]:
    """Finds the spans of a text that are code, in order and without overlaps."""
    return [] if is_plain(text) else _found(text)


def _found(text: str) -> list[tuple[int, int]]:
    found = [match.span() for pattern in (_PATHS, _KEYS) for match in pattern.finditer(text)]
    found += [match.span() for match in _TEX.finditer(text) if _is_formula(match[0])]
    found += [_without_marks(word) for word in re.finditer(r"\S+", text) if _POWER.search(word[0])]
    found += _cell_formulas(text)
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans


def is_formula(content: str) -> bool:
    """Tells whether text between the marks of a formula is one: `\\[optional\\]` is only escaped brackets."""
    content = content.strip()
    return bool(content) and bool(_MATHEMATICAL.search(content) or not _WORD.search(content))


def _is_formula(marked: str) -> bool:
    """The same for a text with its marks."""
    if marked.startswith("$$"):
        return True
    if marked.startswith("$"):  # in text that is not Markdown two dollars are more often two prices
        return bool(re.search(r"[\\^_={}]", marked) or re.fullmatch(r"\$[A-Za-z]\$", marked))
    return is_formula(marked[2:-2])


def _without_marks(word: re.Match[str]) -> tuple[int, int]:
    """The span of a word without the punctuation and brackets around it."""
    text = word[0].rstrip(".,;:!?\"'»”’")
    start, end = len(text) - len(text.lstrip("\"'«“‘")), len(text)
    depths = list(accumulate({"(": 1, ")": -1}.get(character, 0) for character in text[start:end]))
    if text[start] == "(" and min(depths[:-1]) > 0:  # it is closed at the end, or not at all
        start += 1
        end -= depths[-1] == 0
    elif depths[-1] < 0 and text[end - 1] == ")":
        end -= 1
    return word.start() + start, word.start() + end


def _cell_formulas(text: str) -> list[tuple[int, int]]:
    """Finds the spans of spreadsheet formulas, such as =SUM(A1:B2)."""
    found, read_up_to = [], 0
    for match in _CELLS.finditer(text):
        if match.start() >= read_up_to:
            end, read_up_to = _read_cells(text, match.end())
            if end is not None:
                found.append((match.start(), end))
    return found


def _read_cells(text: str, at: int) -> tuple[int | None, int]:
    """Reads a spreadsheet formula. Returns where it ends (None: it is not one), and how far the text was read."""
    depth, operand = 0, False
    end: int | None = None  # the last place at which the formula was complete
    while at < len(text):
        match: re.Match[str] | None = None
        if not operand and (match := _CELL_FUNCTION.match(text, at)):
            depth += 1
        elif not operand and (match := _CELL_OPERAND.match(text, at)):
            operand = True
        elif text[at] == ")" and depth:
            depth, operand = depth - 1, True
        elif (
            match := (depth and _CELL_ARGUMENT.match(text, at)) or (operand and _CELL_OPERATOR.match(text, at)) or None
        ):
            operand = False
        else:
            break
        at = match.end() if match else at + 1
        if operand and not depth:
            end = at
    return end, at

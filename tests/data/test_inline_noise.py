"""Made-up text to copy: of many kinds, of many characters, and never in a script that its sentence is written in."""

import random
import unicodedata

from dragoman.data.inline_noise import FIRST_EMOJI, SCRIPTS, noise, placeholder, tag_pair

DRAWS = 3000


def test_noise_has_all_kinds_and_many_characters() -> None:
    texts = [noise("plain", random.Random(i)) for i in range(DRAWS)]
    characters = {character for text in texts for character in text}
    assert sum(character >= FIRST_EMOJI for character in characters) > 500
    for script in SCRIPTS:
        assert any(chr(code) in characters for code in script)
    assert sum(unicodedata.category(character) in ("Sm", "Sc") for character in characters) > 50
    assert sum(any(map(str.isdigit, text)) and text.isascii() for text in texts) > 0.05 * DRAWS
    assert sum(" " in text for text in texts) > 0.2 * DRAWS  # several in a row
    assert max(map(len, texts)) < 150
    for text in texts:
        assert text == " ".join(text.split())  # nothing that a tokenizer would change
        text.encode()


def test_words_are_of_scripts_that_the_sentence_is_not_written_in() -> None:
    cyrillic = range(0x0430, 0x0450)
    for i in range(DRAWS):
        assert not any(
            ord(character) in cyrillic for character in noise("Кто там? Who is it?", random.Random(i)).lower()
        )
    everything = "".join(chr(code) for script in SCRIPTS for code in script)
    assert all(noise(everything, random.Random(i)) for i in range(200))  # there are other kinds


def test_tags_are_pairs_and_placeholders_are_those_of_programs() -> None:
    for i in range(200):
        opening, closing = tag_pair(random.Random(i))
        assert closing == f"</{opening[1:-1].split(' ')[0]}>"
    found = {placeholder(random.Random(i)) for i in range(500)}
    assert {"{name}", "{0}", "{}", "%s", "%d", "{{ count }}", "${user}", "%(file)s", "%1$s", "__id__"} <= found

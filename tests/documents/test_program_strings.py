# ruff: noqa: E501
"""Messages of programs: YAML, .properties, Android's and Apple's strings. Other readers find the same keys in them."""

import plistlib
from typing import Any

import pytest
import yaml
from lxml import etree

from dragoman.documents.format_names import DocumentFormat
from dragoman.documents.pipeline import translate_bytes
from dragoman.errors import DataError
from support.scripted_translator import Scripted, careful


def through(content: str | bytes, kind: DocumentFormat, translator: Scripted | None = None) -> str:
    given = content.encode() if isinstance(content, str) else content
    return translate_bytes(given, kind, "x", translator or Scripted(careful))[0].decode()


YAML = r"""# the messages
en: &all
  hello: Hello %{name} # a note
  "a key": "a \"big\" dog\n"
  single: 'it''s a dog'
  ref: *other
  yes: no
  count: 12
  items:
  - first dog
  - name: second dog
    id: item_two
  flow: {a: the dog}
  literal: |
    line one
    # no comment

    para
  folded: >-
    a line and
    its rest
  plain: goes on
    here
  quoted: "goes on
    there"
  last: the end"""


def test_yaml() -> None:
    said = through(YAML, "yaml")
    assert said == (
        YAML.replace("Hello %{name}", "HELLO %{name}")
        .replace(r'a \"big\" dog\n', r'A \"BIG\" DOG\n')
        .replace("it''s a dog", "IT''S A DOG")
        .replace("first dog", "FIRST DOG")
        .replace("second dog", "SECOND DOG")
        .replace("line one", "LINE ONE")
        .replace("# no comment", "# NO COMMENT")
        .replace("para", "PARA")
        .replace("a line and\n    its rest", "A LINE AND\n    ITS REST")
        .replace("goes on\n    here", "GOES ON HERE")
        .replace("goes on\n    there", "GOES ON THERE")
        .replace("the end", "THE END")
    )  # fmt: skip

    def keys(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: keys(inner) for key, inner in value.items()}
        return [keys(one) for one in value] if isinstance(value, list) else type(value)

    before = YAML.replace("*other", "other")
    assert keys(yaml.safe_load(through(before, "yaml"))) == keys(yaml.safe_load(before))


@pytest.mark.parametrize(
    "brackets",
    [
        "{\n  a: Press the key,\n  b: Save it\n}",
        "[\n  -5,\n  {a: it's a dog,\n  'b]': \"the ] dog\n  b: }\", c: don't},\n  d # the ] dog\n  ]",
        "!!map {\n  a:\n  Press it }  # a } dog",
        "\n  {\n  a: Press the key,\n  b: 'it''s ]\n  c: }'}",
    ],
)
def test_yaml_collections_in_brackets_are_copied(brackets: str) -> None:
    content = f"k: {brackets}\nlast: the dog\n"
    assert yaml.safe_load(content)["last"] == "the dog"
    assert through(content, "yaml") == content.replace("last: the dog", "last: THE DOG")
    items = content.replace("k: ", "- ", 1).replace("last:", "-")
    assert through(items, "yaml") == items.replace("- the dog", "- THE DOG")


def upper(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: upper(inner) for key, inner in value.items()}
    return [upper(one) for one in value] if isinstance(value, list) else value.upper()


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "value",
    [
        "goes on{}  here{}{}  and here{}{} {}  to its end",
        "'goes on{}  here{}{}  and it''s{}{} {}  at its end'",
        "'goes on {}{}  here'",
        "'{}  a dog{}{}  '",
        '"goes on{}  here{}{}  and \\"here\\"{}{} {}  to its \\n end"',
        "a dog{}  here # a note",
    ],
)
def test_yaml_line_breaks_in_values(value: str, newline: str) -> None:
    for form in ("k: {}\nlast: the dog\n", "- {}\n- the dog\n", "a:\n - k: {}\n   b: a cat\n"):
        content = form.format(value.replace("{}", "{}   ")).replace("{}", "\n").replace("\n", newline)
        said = through(content, "yaml")
        if "#" not in value:
            assert yaml.safe_load(said) == upper(yaml.safe_load(content))
        else:
            assert value.replace("{}", newline + "   ") in said
        assert said.count("\r") in (0, said.count("\n"))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("header", ["|", ">", ">-", ">+", "|2-", ">2", ">+2", ">-2 # a note"])
def test_yaml_lines_that_are_further_in(header: str, newline: str) -> None:
    text = "the dog\nand the cat\n  - a list\n  - of two\nthe end\nof it\n\n   some code\n\n\tx = a tab\nlast words\n"
    for first in ("", "  at the start\n") if "2" in header else ("",):
        block = "".join("  " + line if line.strip("\n") else line for line in (first + text).splitlines(keepends=True))
        content = f"k: {header}\n{block}\nlast: the dog\n".replace("\n", newline)
        assert yaml.safe_load(through(content, "yaml")) == upper(yaml.safe_load(content))


@pytest.mark.parametrize(
    "says", ["a: b", "no", "# x", "- y", "12", "it's", "[x]", "x #y", "'q'", "&a", "key:", "5 o'clock"]
)
def test_yaml_says_what_the_translator_said(says: str) -> None:
    for form in ("a: the dog\n", "a: 'the dog'\n", 'a: "the dog"\n', "- the dog\n"):
        read = yaml.safe_load(through(form, "yaml", Scripted(lambda _: says)))
        # A translation that lost or added something is not taken.
        assert (read["a"] if isinstance(read, dict) else read[0]) in (says, "the dog")
    assert yaml.safe_load(through("a: the dog\n", "yaml", Scripted(lambda _: "a: b")))["a"] == "a: b"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("key = the dog\n", "key = THE DOG\n"),
        ("a.b:the \\\n    dog\r\n", "a.b:THE DOG\r\n"),
        ("k=caf\\u00e9 dog", "k=CAF\\u00C9 DOG"),
        ("k=the \\: dog\\n", "k=THE : DOG\\n"),
        ("m=it''s {0}", "m=IT''S {0}"),
        ("m='{'a dog'}' {0}", "m='{'a dog'}' {0}"),
        ("# a dog\n! a cat\n\nurl=http://x.y/z\nid=main_menu\n", "# a dog\n! a cat\n\nurl=http://x.y/z\nid=main_menu\n"),
        ("a b = the dog", "a B = THE DOG"),
    ],
)  # fmt: skip
def test_properties(line: str, after: str) -> None:
    assert through(line, "properties") == after


def test_properties_are_written_in_what_their_readers_expect() -> None:
    french = Scripted(lambda _: "l'été {0} 𝄞")
    assert through("m=summer {0}", "properties", french) == "m=l''\\u00E9t\\u00E9 {0} \\uD834\\uDD1E"
    assert through("# é\nm=summer {0}", "properties", french) == "# é\nm=l''été {0} 𝄞"
    found, _ = translate_bytes("# é\nm=été".encode("latin-1"), "properties", "x", Scripted(careful))
    assert found == "# é\nm=\\u00C9T\\u00C9".encode("latin-1")


@pytest.mark.parametrize(
    ("inner", "after"),
    [
        (r'<string name="a">It\'s a dog\n</string>', r'<string name="a">IT\'S A DOG\n</string>'),
        ('<string name="a" translatable="false">dog</string>', '<string name="a" translatable="false">dog</string>'),
        ('<string name="a">The <b>red</b> %1$s</string>', '<string name="a">THE <b>RED</b> %1$s</string>'),
        ('<string name="a">&lt;b>a&lt;/b> dog</string>', '<string name="a">&lt;b&gt;A&lt;/b&gt; DOG</string>'),
        ('<string name="a">@string/dog</string>', '<string name="a">@string/dog</string>'),
        ('<string name="a"><xliff:g id="n">Tom</xliff:g> runs</string>',
         '<string name="a"><xliff:g id="n">Tom</xliff:g> RUNS</string>'),
        ('<string name="a"><![CDATA[<b>a</b> dog]]></string>', '<string name="a"><![CDATA[<b>A</b> DOG]]></string>'),
        ('<string name="a">" a dog "</string>', '<string name="a">" A DOG "</string>'),
        ('<plurals name="p"><item quantity="one">%d dog</item></plurals>',
         '<plurals name="p"><item quantity="one">%d DOG</item></plurals>'),
        ('<string name="a">see <xliff:g id="x"><b>%s</b></xliff:g> run</string>',
         '<string name="a">SEE <xliff:g id="x"><b>%s</b></xliff:g> RUN</string>'),
        ('<string name="a">He said "hello" &quot;loudly&quot;</string>', '<string name="a">HE SAID HELLO LOUDLY</string>'),
        (r'<string name="a">He said \"hello\" loudly</string>', r'<string name="a">HE SAID \"HELLO\" LOUDLY</string>'),
        ('<string-array name="q"><item>a dog</item></string-array>',
         '<string-array name="q"><item>A DOG</item></string-array>'),
        ('<string-array name="q" translatable="false"><item>a dog</item></string-array>',
         '<string-array name="q" translatable="false"><item>a dog</item></string-array>'),
        ('<item name="a" type="id"/><color name="c">red</color>', '<item name="a" type="id"/><color name="c">red</color>'),
    ],
)  # fmt: skip
def test_android(inner: str, after: str) -> None:
    around = '<?xml version="1.0" encoding="utf-8"?>\n<resources xmlns:xliff="urn:x"><!-- a dog -->{}</resources>\n'
    said = through(around.format(inner), "android")
    assert said == around.format(after)
    etree.fromstring(said.encode())


def test_letters_that_the_encoding_of_a_file_for_android_lacks() -> None:
    around = '<?xml version="1.0" encoding="iso-8859-1"?><resources><string name="a">{}</string></resources>'
    heart = Scripted(lambda _: "cœur é")
    for given, after in (("<![CDATA[heart]]>", "<![CDATA[c\\u0153ur é]]>"), ("heart", "c&#339;ur é")):
        found, _ = translate_bytes(around.format(given).encode("latin-1"), "android", "x", heart)
        assert found.decode("latin-1") == around.format(after)


def test_entities_that_android_declares_are_copied() -> None:
    around = '<!DOCTYPE resources [<!ENTITY app "Foo">]>\n<resources><string name="a">{}</string></resources>'
    assert through(around.format("Welcome to &app; &amp; co"), "android") == around.format("WELCOME TO &app; &amp; CO")
    assert through(around.format("Welcome to &amp;app;"), "android") == around.format("WELCOME TO &amp;app;")


def test_android_escapes_what_a_translation_brings() -> None:
    said = through(
        "<resources><string name='a'>the dog</string></resources>", "android", Scripted(lambda _: '@l\'été "x"')
    )
    assert said == "<resources><string name='a'>\\@l\\'été \\\"x\\\"</string></resources>"
    with pytest.raises(
        DataError, match="x: its first element is <svg>, and of XML only the strings of Android are read"
    ):
        through("<svg><text>a dog</text></svg>", "android")


def test_strings_of_apple() -> None:
    text = '/* a "dog" */\n"k" = "the \\"dog\\" %@";\nbare = "a\\nb dog"; // x = "y";\n"same";\n"id" = "main_menu";\n'
    after = text.replace('the \\"dog\\"', 'THE \\"DOG\\"').replace("a\\nb dog", "A\\nB DOG")
    assert through(text, "strings") == after
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        found, _ = translate_bytes(text.encode(encoding), "strings", "x", Scripted(careful))
        assert found.decode(encoding) == after
    with pytest.raises(DataError, match="x: no strings at '= 5"):
        through('"a" = "b";\n= 5', "strings")


def test_plurals_of_apple() -> None:
    rule = {"NSStringFormatSpecTypeKey": "NSStringPluralRuleType", "NSStringFormatValueTypeKey": "d", "one": "%d dog"}
    plist = {"dogs": {"NSStringLocalizedFormatKey": "%#@n@ left", "n": {**rule, "other": "%d dogs & cats"}}}
    assert plistlib.loads(through(plistlib.dumps(plist), "stringsdict").encode()) == {
        "dogs": {"NSStringLocalizedFormatKey": "%#@n@ LEFT", "n": {**rule, "one": "%d DOG", "other": "%d DOGS & CATS"}}
    }

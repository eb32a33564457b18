"""References to entities: those that every document may have are characters, a document's own stay as they are."""

from dragoman.documents.entities import keep_references, own_references, unescape_xml, with_references
from dragoman.documents.flow import Flow
from dragoman.documents.office_xml import escape_xml


def test_own_references_stay() -> None:
    raw = "&lt;&#233;&#xe9; &app; &copyright; &copy; <!-- &no; --><![CDATA[&not;]]>"
    assert unescape_xml("&lt;&#233;&#xe9; &app; &copyright;") == "<éé &app; &copyright;"
    assert unescape_xml("&copy; &copyright; &nbsp;", xhtml=True) == "© &copyright; \u00a0"
    assert own_references(raw) == {"app", "copyright", "copy"}
    assert own_references(raw, xhtml=True) == {"app", "copyright"}
    assert with_references(escape_xml, own_references("&a.b;"))("&a.b; &axb; & <") == "&a.b; &amp;axb; &amp; &lt;"
    flow = keep_references(Flow("a &b; &c; &b;", "", kept=((6, 9),)), frozenset("b"))
    assert flow.kept == ((2, 5), (6, 9), (10, 13))

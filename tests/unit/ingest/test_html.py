"""HTML: the main text as a reader of the page sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cognicraft.errors import BinaryFile, CorruptFile, EmptyFile
from cognicraft.ingest.read import read_file
from unit.ingest.reading import assert_sound, blocks_of, read_one, write


def blocks(folder: Path, html: str) -> list[tuple[str, str]]:
    return blocks_of(read_one(write(folder, "a.html", "<!doctype html><body>" + html)))


def table(rows: list[tuple[str, ...]]) -> str:
    return f"<table>{''.join('<tr>' + ''.join(f'<td>{cell}</td>' for cell in row) for row in rows)}</table>"


def test_headings_paragraphs_and_code(tmp_path: Path) -> None:
    html = "<h1>Net\n <b>sales</b></h1><p>One  <i>two</i>\nthree.<br>Four</p>loose<pre>a\n  b</pre>"
    html += "<h2>Sub</h2><div>end</div>"
    assert blocks(tmp_path, html) == [
        ("heading", "Net sales"), ("paragraph", "One two three.\nFour"), ("paragraph", "loose"), ("code", "a\n  b"),
        ("heading", "Sub"), ("paragraph", "end"),
    ]  # fmt: skip


def test_title_language_and_metadata_come_from_the_head(tmp_path: Path) -> None:
    head = '<html lang="de-AT"><head><title>A &amp;\n B</title><meta name=author content="Ada"></head><body><h1>H</h1>'
    document = read_one(write(tmp_path, "a.html", head))
    assert (document.title, document.language, document.metadata) == ("A & B", "de", {"author": "Ada"})
    assert document.text == "H"


def test_the_first_heading_is_the_title_where_there_is_none(tmp_path: Path) -> None:
    assert read_one(write(tmp_path, "a.htm", "<h2>First</h2><h1>Second</h1>")).title == "First"


@pytest.mark.parametrize(
    "hidden",
    [
        "<script>no()</script>", "<style>no{}</style>", "<nav>no</nav>", "<template>no</template>",
        "<noscript>no</noscript>", "<div hidden>no</div>", "<p style='color:red; display : none'>no</p>",
        "<div aria-hidden=true>no</div>", "<div role=navigation>no</div>", "<!-- no -->", "<button>no</button>",
        "<select><option>no</select>", "<textarea>no</textarea>", "<svg><text>no</text></svg>",
    ],
)  # fmt: skip
def test_what_a_reader_does_not_see_is_left_out(tmp_path: Path, hidden: str) -> None:
    assert blocks(tmp_path, f"<p>before</p>{hidden}<p>after</p>") == [("paragraph", "before"), ("paragraph", "after")]


def test_the_main_part_is_read_where_it_is_marked(tmp_path: Path) -> None:
    assert blocks(tmp_path, "<div>menu</div><main><p>The text of the page.</p></main><div>foot</div>") == [
        ("paragraph", "The text of the page.")
    ]


def test_a_small_main_part_does_not_hide_the_rest(tmp_path: Path) -> None:
    assert ("paragraph", "long " * 50 + "text") in blocks(tmp_path, "<main>x</main><p>" + "long " * 50 + "text</p>")


def test_lists_are_nested_and_numbered(tmp_path: Path) -> None:
    html = "<ul><li>one<ul><li>two</ul><li><p>three</p><p>four</p></ul><ol start=3><li>x<li>y</ol>"
    assert blocks(tmp_path, html) == [("list", "- one\n  - two\n- three\n  four"), ("list", "3. x\n4. y")]


def test_tables_with_heads_over_several_rows_and_columns(tmp_path: Path) -> None:
    html = """<table><caption>In millions</caption>
    <thead><tr><th rowspan=2></th><th colspan=2>Net sales</th></tr><tr><th>2022</th><th>2021</th></tr></thead>
    <tr><th>iPhone</th><td>40,665</td><td>39,570</td></tr>
    <tr><td colspan=3>Services:</td></tr>
    <tr><td rowspan=2>Mac</td><td>1</td><td></td></tr><tr><td>3</td><td>4</td></tr></table>"""
    assert blocks(tmp_path, html) == [
        ("paragraph", "In millions"),
        ("table", "iPhone | Net sales 2022: 40,665 | Net sales 2021: 39,570\nServices:\n"
         "Mac | Net sales 2022: 1\nMac | Net sales 2022: 3 | Net sales 2021: 4"),
    ]  # fmt: skip


def test_a_table_without_marked_heads(tmp_path: Path) -> None:
    rows = [("", "2022", "2021"), ("a", "1", "2")]
    assert blocks(tmp_path, table(rows)) == [("table", "2022 | 2021\na | 1 | 2")]
    rows = [("Name", "Amount"), ("a", "10"), ("b", "20")]
    assert blocks(tmp_path, table(rows)) == [("table", "a | Amount: 10\nb | Amount: 20")]


def test_names_and_values_have_no_heads(tmp_path: Path) -> None:
    rows = [("Type", "Public"), ("Founded", "1976"), ("Seat", "Cupertino")]
    assert blocks(tmp_path, table(rows)) == [("table", "Type | Public\nFounded | 1976\nSeat | Cupertino")]
    box = "<table><tr><th>Type<td>Public<tr><th>Founded<td>1976</table>"
    assert blocks(tmp_path, box) == [("table", "Type | Public\nFounded | 1976")]


def test_signs_in_cells_of_their_own_join_their_numbers(tmp_path: Path) -> None:
    rows = [("Sales", "$", "40,665", ""), ("Loss", "(", "12", ")"), ("Share", "", "5", "%")]
    assert blocks(tmp_path, table(rows)) == [("table", "Sales | $40,665\nLoss | (12)\nShare | 5%")]


def test_raised_figures_do_not_join_their_numbers(tmp_path: Path) -> None:
    html = "<p>Sales of 40,665<sup>1</sup> on the 4<sup>th</sup></p><table><tr><td>a<td>7<sup><a>(2)</a></sup></table>"
    assert blocks(tmp_path, html) == [("paragraph", "Sales of 40,665¹ on the 4th"), ("table", "a | 7⁽²⁾")]


def test_a_table_that_only_places_things_is_read_as_text(tmp_path: Path) -> None:
    html = (
        "<table><tr><td><h2>Head</h2><p>Words</p></td><td><table><tr><th>k<th>v<tr><td>a<td>1</table></td></tr></table>"
    )
    assert blocks(tmp_path, html) == [("heading", "Head"), ("paragraph", "Words"), ("table", "a | v: 1")]


def test_spans_beyond_all_bounds_are_cut(tmp_path: Path) -> None:
    cell = "<td colspan=99999 rowspan=65534>x</td><td>y</td>"
    assert blocks(tmp_path, f"<table>{f'<tr>{cell}</tr>' * 300}</table>")[0][0] == "table"


def test_entities_and_odd_characters(tmp_path: Path) -> None:
    assert blocks(tmp_path, "<p>a&nbsp;&lt;b&gt; &eacute;&#x20AC;&#0;&#55357;co&shy;op</p>")[0][1].startswith(
        "a <b> é€"
    )


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ('<meta charset="windows-1252">', "windows-1252"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">', "shift_jis"),
        ("<meta charset=windows-1252>", "utf-8"),  # the declaration is wrong
        ("", "utf-16"),
    ],
)
def test_the_declared_encoding_is_used_if_it_fits(tmp_path: Path, head: str, encoding: str) -> None:
    text = "日本語" if encoding == "shift_jis" else "Größe"
    path = write(tmp_path, "a.html", f"<html><head>{head}</head><body><p>{text}</p>".encode(encoding))
    assert read_one(path).text == text


def test_unclosed_and_misnested_elements(tmp_path: Path) -> None:
    assert blocks(tmp_path, "<p>one<p>two<b><i>three</b>four</i></div></p><td>five") == [
        ("paragraph", "one"), ("paragraph", "twothreefour"), ("paragraph", "five"),
    ]  # fmt: skip


def test_thousands_of_open_elements_are_refused_and_hundreds_read(tmp_path: Path) -> None:
    assert blocks(tmp_path, "<div><span>" * 1_000 + "deep") == [("paragraph", "deep")]
    assert blocks(tmp_path, "<b>" * 20_000 + "bold") == [("paragraph", "bold")]
    with pytest.raises(CorruptFile, match="nested more than 5,000 deep"):
        blocks(tmp_path, "<div>" * 100_000 + "too deep")


def test_markup_in_scripts_is_not_nesting(tmp_path: Path) -> None:
    script = '<script>x = "' + "<div><\\/div>" * 6_000 + '"</script>'
    assert blocks(tmp_path, script + "<p>Words</p>") == [("paragraph", "Words")]


@pytest.mark.parametrize("content", ["<html></html>", "<script>x</script>", "<p>&nbsp;</p>"])
def test_a_page_without_text_is_empty(tmp_path: Path, content: str) -> None:
    with pytest.raises(EmptyFile):
        read_one(write(tmp_path, "a.html", content))


TAGS = [
    "p",
    "div",
    "h1",
    "ul",
    "ol",
    "li",
    "table",
    "tr",
    "td",
    "th",
    "thead",
    "caption",
    "pre",
    "br",
    "b",
    "main",
    "a",
]
PIECES = st.lists(
    st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS])
    | st.sampled_from(
        ["word ", "&amp;", " ", "\n", "<td colspan=3>", "<td rowspan=2>", "<!--", "-->", "\x1b[3m", "é", "12"]
    )
)


@given(PIECES.map("".join))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_html_gives_a_sound_document(tmp_path: Path, html: str) -> None:
    path = write(tmp_path, "a.html", html)
    try:
        (document,) = read_file(str(path), {})
    except (EmptyFile, BinaryFile):
        return
    assert_sound(document)

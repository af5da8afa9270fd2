"""Formulas as MathML, which browsers draw themselves: no JavaScript, no fonts, nothing from the network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_display(translator: Any, node: nodes.math_block) -> None:
    number = node.get("number")
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(tex2mathml(node.astext(), as_block=True))
    if number:
        translator.body.append(f'<span class="eqno">({number})</span>')
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

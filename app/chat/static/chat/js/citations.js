// The markers [n] of an answer become small buttons; a marker that names no source is taken out.
import { h } from "../../common/js/dom.js";

const MARKER = /\s?\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;
const SKIP = "code, pre, a, button";

export function citeButton(source, open) {
  const where = source.page ? `${source.title}, page ${source.page}` : source.title;
  return h(
    "button",
    { type: "button", class: "cite", title: where, "aria-label": `Source ${source.n}: ${where}`, data: { n: source.n }, onclick: () => open(source.n) },
    String(source.n),
  );
}

function pieces(text, sources, open) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(MARKER)) {
    parts.push(text.slice(at, match.index));
    for (const number of match[1].split(",").map(Number)) {
      const source = sources.find((item) => item.n === number);
      if (source) parts.push(citeButton(source, open));
    }
    at = match.index + match[0].length;
  }
  parts.push(text.slice(at));
  return parts;
}

/** Replace markers inside `root` (an element or fragment). `sources` is read at the time of the call. */
export function decorate(root, sources, open) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.data.includes("[") && !node.parentElement?.closest(SKIP)) found.push(node);
  }
  for (const node of found) {
    if (node.data.search(MARKER) >= 0) node.replaceWith(...pieces(node.data, sources, open));
  }
}

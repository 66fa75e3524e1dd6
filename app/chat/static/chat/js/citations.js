// The markers [n] of an answer become small buttons; a marker that names no source is taken out.
import { h } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";

const MARKER = /\s?\[(\d{1,3}(?:\s*,\s*\d{1,3})*)\]/g;
const SKIP = "code, pre, a, button, .math";

const GLIMPSE = 240;

/** Where a passage stands and how it begins, for whoever hovers. */
function glimpse(source) {
  const where = [source.title, source.page ? t("page {page}", { page: source.page }) : source.heading].filter(Boolean).join(", ");
  const words = (source.text ?? "").replace(/\s+/g, " ").trim();
  return words ? `${where}\n${words.length > GLIMPSE ? `${words.slice(0, GLIMPSE).trimEnd()}…` : words}` : where;
}

export function citeButton(source, open) {
  const where = source.page ? t("{title}, page {page}", { title: source.title, page: source.page }) : source.title;
  return h(
    "button",
    { type: "button", class: "cite", title: glimpse(source), "aria-label": t("Source {n}: {where}", { n: source.n, where }), data: { n: source.n }, onclick: () => open(source.n) },
    String(source.n),
  );
}

const OPENING = 40;

/** Where in its file a passage stands, ever more exactly: page or heading, both, and how it begins. */
const SPOTS = [
  ({ page, heading }) => [page ? t("p. {page}", { page }) : heading],
  ({ page, heading }) => [page ? t("p. {page}", { page }) : null, heading],
  ({ page, heading, text }) => [page ? t("p. {page}", { page }) : null, heading, text ? `“${text.trim().replace(/\s+/g, " ").slice(0, OPENING).trimEnd()}…”` : null],
].map((parts) => (source) => parts(source).filter(Boolean).join(" · "));

/** The shortest words that tell a source from the others of the same file. */
function spotOf(source, sources) {
  const others = sources.filter((other) => other !== source && other.title === source.title);
  const telling = SPOTS.find((spot) => others.every((other) => spot(other) !== spot(source))) ?? SPOTS.at(-1);
  return telling(source);
}

/** The sources below an answer: number, name, and where in it the passage stands. */
export function sourceChips(sources, open) {
  return sources.map((source) => {
    const spot = spotOf(source, sources);
    return h("li", {}, h("button", { type: "button", class: "source-chip", title: glimpse(source), onclick: () => open(source.n) },
      h("span", { class: "cite plain" }, String(source.n)), h("span", { class: "name" }, source.title),
      spot ? h("span", { class: "muted spot" }, spot) : null));
  });
}

/** A quotation between its marks, the number of its source on the line of its last word. */
export function tied(text, button) {
  const last = /\S{0,30}$/.exec(text)[0];
  return ["“", text.slice(0, text.length - last.length), h("span", { class: "tied" }, last, "”", button)];
}

/** Keep a mark on the line of the word before it, and the punctuation after it on the line of the mark. */
function tie(parts, buttons) {
  const last = parts.at(-1);
  if (last instanceof Element) {
    last.append(...buttons);
    return;
  }
  const word = /\S{0,30}$/.exec(last)[0];
  parts[parts.length - 1] = last.slice(0, last.length - word.length);
  parts.push(h("span", { class: "tied" }, word, buttons));
}

function pieces(text, sources, open) {
  const parts = [""];
  let at = 0;
  const plain = (words) => {
    const closing = parts.at(-1) instanceof Element ? /^[.,;:!?)\]…]*/.exec(words)[0] : "";
    if (closing) parts.at(-1).append(closing);
    const rest = words.slice(closing.length);
    if (!rest) return;
    if (parts.at(-1) instanceof Element) parts.push(rest);
    else parts[parts.length - 1] += rest;
  };
  for (const match of text.matchAll(MARKER)) {
    plain(text.slice(at, match.index));
    const named = match[1].split(",").map((n) => sources.find((item) => item.n === Number(n))).filter(Boolean);
    if (named.length) tie(parts, named.map((source) => citeButton(source, open)));
    at = match.index + match[0].length;
  }
  plain(text.slice(at));
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

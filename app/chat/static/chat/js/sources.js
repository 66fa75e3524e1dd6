// The panel of sources: the passages that went with a question, those the answer cites first.
import { get } from "../../common/js/api.js";
import { h, iconButton, skeleton } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";
import { told } from "../../common/js/sentences.js";
import { splitSources } from "./answer.js";
import { middle, pagePicture } from "./page-picture.js";
import { passageLink } from "./passage-link.js";

const panel = document.getElementById("sources");
const chat = document.getElementById("chat");
let opener = null;

/** A pattern for any of the quoted sentences, whose line breaks were joined. */
function anyOf(quotes) {
  const one = (text) => text.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("\\s+");
  return quotes.length ? new RegExp(`(${quotes.map(one).join("|")})`) : null;
}

/** A passage in paragraphs: lines that were only wrapped in the file are joined, short ones (lists, verses) stay. */
function paragraphs(text, quotes) {
  const quoted = anyOf(quotes);
  return text.split(/\n\s*\n/).map((block) => {
    const words = block.replace(/(\S[^\n]{59,})\n(?=\S)/g, "$1 ");
    // Splitting by a pattern in brackets leaves what it matched at the odd places.
    return h("p", {}, quoted ? words.split(quoted).map((part, i) => (i % 2 ? h("mark", {}, part) : part)) : words);
  });
}

/** The part of the page around the passage; it opens the document there. */
function glimpse(source) {
  // A passage that goes on over the page is shown where most of it stands.
  const places = (source.places ?? []).filter((place) => place.picture && place.boxes.length);
  const place = places.reduce((best, one) => (!best || one.boxes.length > best.boxes.length ? one : best), null);
  if (!place) return null;
  const window_ = h("a", { class: "page-window", href: passageLink(source), target: "_blank", rel: "noopener", tabindex: "-1", data: { middle: middle(place.boxes) } },
    pagePicture(place, { title: source.title, gone: () => window_.remove() }));
  return window_;
}

/** Bring the marked lines to the middle of each window; their heights are known once they are on the page. */
function centre() {
  for (const window_ of panel.querySelectorAll(".page-window")) {
    window_.scrollTop = Number(window_.dataset.middle) * window_.scrollHeight - window_.clientHeight / 2;
  }
}

function pages(source) {
  if (!source.page) return null;
  return source.page_end ? t("Pages {first}–{last}", { first: source.page, last: source.page_end }) : t("Page {page}", { page: source.page });
}

function passage(source, quotes) {
  const where = [pages(source), source.heading].filter(Boolean).join(" · ");
  const warnings = source.warnings ?? [];
  return h("li", { class: "source", id: `source-${source.n}`, tabindex: "-1" },
    h("div", { class: "source-head" }, h("span", { class: "cite plain" }, String(source.n)),
      h("div", {}, h("p", { class: "source-title" }, source.title || t("A source you can no longer open")), where ? h("p", { class: "muted small" }, where) : null)),
    warnings.map((words) => h("p", { class: "small warn" }, told(words))),
    glimpse(source),
    source.text ? h("blockquote", { class: "passage", dir: "auto" },
        paragraphs(source.text, quotes.filter((quote) => quote.n === source.n).map((quote) => quote.text)))
      : h("p", { class: "muted small" }, source.readable === false ? t("You may no longer read this document, so its passage is not shown.") : t("The text of this passage was removed.")),
    source.readable === false ? null : h("a", { class: "small", href: passageLink(source), target: "_blank", rel: "noopener" }, source.page ? t("Open page {page}", { page: source.page }) : t("Open the document")));
}

function list(title, sources, quotes) {
  return sources.length ? [h("h3", { class: "source-group" }, title), h("ol", {}, sources.map((source) => passage(source, quotes)))] : [];
}

function frame(...content) {
  panel.replaceChildren(
    h("div", { class: "panel-head" }, h("h2", {}, t("Sources")), iconButton("x", t("Close sources"), () => close())),
    h("div", { class: "panel-body" }, content));
}

/** What the answer came with has no places on pages; the sources route has, after checking present rights. */
async function withPlaces(answer) {
  if (answer.sources.every((source) => source.places !== undefined) || !answer.turn_id) return;
  const { items } = await get(`turns/${answer.turn_id}/sources/`);
  const full = new Map(items.map((item) => [item.n, item]));
  answer.sources = answer.sources.map((source) => ({ ...source, ...full.get(source.n) }));
}

function draw(answer) {
  const { cited, sent } = splitSources(answer);
  frame(...list(t("Cited in the answer"), cited, answer.quotes), ...list(cited.length ? t("Also sent to the model") : t("Sent to the model"), sent, answer.quotes));
}

function reveal(n) {
  const target = n === null ? panel : panel.querySelector(`#source-${n}`);
  panel.querySelectorAll(".source.current").forEach((item) => item.classList.remove("current"));
  target?.classList.toggle("current", n !== null);
  target?.scrollIntoView({ block: "nearest" });
  // In a long passage the quoted sentence may stand below what fits.
  if (n !== null) target?.querySelector("mark")?.scrollIntoView({ block: "nearest" });
  target?.focus({ preventScroll: true });
}

/** Open at source `n` of an answer (null: at the top). */
export async function openSource(answer, n) {
  if (panel.hidden) opener = document.activeElement;
  panel.hidden = false;
  chat.dataset.panel = "open";
  frame(skeleton(5));
  try {
    await withPlaces(answer);
    draw(answer);
    centre();
    reveal(n);
  } catch (error) {
    frame(h("p", { class: "callout bad" }, error.message));
  }
}

export function close() {
  if (panel.hidden) return false;
  panel.hidden = true;
  delete chat.dataset.panel;
  opener?.focus?.();
  return true;
}

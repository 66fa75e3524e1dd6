// Sentences that the model left unmarked and a passage has in nearly the same words: found by Tessera, shown as such.
import { h } from "../../common/js/dom.js";
import { citeButton, tied } from "./citations.js";

const SHOWN = 6;

/** A list of the matches of an answer, or null. `open` opens the panel at a source. */
export function matchList(answer, open) {
  const lines = (answer.matches ?? []).map((match) => {
    const source = answer.sources.find((item) => item.n === match.n);
    return source ? h("li", {}, h("q", {}, tied(match.text, citeButton(source, open)))) : null;
  }).filter(Boolean);
  if (!lines.length) return null;
  const more = lines.length - SHOWN;
  return h("details", { class: "matches" },
    h("summary", {}, lines.length === 1 ? "1 sentence matches a passage" : `${lines.length} sentences match a passage`),
    h("p", { class: "muted small" }, "The model put no mark here. These sentences have nearly the words of a passage that it was given."),
    h("ul", {}, lines.slice(0, SHOWN)),
    more > 0 ? h("p", { class: "muted small" }, `And ${more} more.`) : null);
}

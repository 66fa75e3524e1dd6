// Sentences that the model left unmarked and a passage has in nearly the same words: found by Tessera, shown as such.
import { h } from "../../common/js/dom.js";
import { t, tn } from "../../common/js/i18n.js";
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
    h("summary", {}, tn("{n} sentence matches a passage", "{n} sentences match a passage", lines.length)),
    h("p", { class: "muted small" }, t("The model put no mark here. These sentences have nearly the words of a passage that it was given.")),
    h("ul", {}, lines.slice(0, SHOWN)),
    more > 0 ? h("p", { class: "muted small" }, t("And {more} more.", { more })) : null);
}

// Finding in a collection: documents by their name as one types, and passages in their text on Enter.
import { h, icon } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";
import { showPassages } from "./passages.js";

const PAUSE_MS = 200;
const STATES = [["", t("all documents")], ["ready", t("ready")], ["queued,parsing,chunking,embedding", t("being read")], ["failed,cancelled", t("failed or stopped")]];

/** `names`: of collections by id; `narrowed()` is called when other documents are to be shown. */
export function finder(collection, { names, narrowed }) {
  let timer = 0;
  const box = h("input", { type: "search", class: "input", id: "find", maxlength: "500", autocomplete: "off", dir: "auto", placeholder: t("A name, or a question to the text"), "aria-label": t("Find documents by name, or passages in their text") });
  const state = h("select", { class: "input", "aria-label": t("Which documents") }, STATES.map(([value, words]) => h("option", { value }, words)));
  const button = h("button", { type: "submit", class: "button compact" }, t("Search the text"));
  const results = h("div", {});
  box.addEventListener("input", () => {
    window.clearTimeout(timer);
    timer = window.setTimeout(narrowed, PAUSE_MS);
  });
  state.addEventListener("change", narrowed);
  const form = h("form", { class: "finder", role: "search", onsubmit: (event) => {
    event.preventDefault();
    const query = box.value.trim();
    if (query) void showPassages(results, { query, collection, names, closed: () => box.focus() });
  } }, h("div", { class: "finder-box" }, icon("search", true), box), state, button);
  return {
    node: h("div", { hidden: !collection.document_count }, form, results),
    /** What narrows the list, as [name, value] pairs of the address. */
    only: () => [...(box.value.trim() ? [["name", box.value.trim()]] : []), ...state.value.split(",").filter(Boolean).map((value) => ["status", value])],
  };
}

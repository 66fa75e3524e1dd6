// Looking for passages in the text of documents, without a model: the best ones with where they stand.
import { post } from "../../common/js/api.js";
import { h, iconButton, report, skeleton } from "../../common/js/dom.js";
import { t, tn } from "../../common/js/i18n.js";
import { told } from "../../common/js/sentences.js";
import { passageLink } from "./passage-link.js";

const MOST = 20;
const DAY_MS = 86_400_000;
const SPANS = [[0, t("added at any time")], [7, t("added in the last 7 days")], [30, t("added in the last 30 days")], [365, t("added in the last year")]];

function found(passage, collections) {
  const where = [passage.page ? t("p. {page}", { page: passage.page }) : null, passage.heading, collections.get(passage.collection_id)].filter(Boolean).join(" · ");
  return h("li", { class: "found-passage" },
    h("p", {}, h("a", { href: passageLink(passage), dir: "auto" }, passage.title)), where ? h("p", { class: "muted small" }, where) : null,
    passage.warnings.map((words) => h("p", { class: "small warn" }, told(words))),
    h("p", { class: "passage", dir: "auto" }, passage.text.trim().replace(/\s+/g, " ")));
}

/** The results for `query` in `box`. `collection`: the one on screen; `names`: of all by id; `closed()` when put away. */
export async function showPassages(box, { query, collection, names, closed }) {
  const scope = h("select", { class: "input", "aria-label": t("Where to look") }, h("option", { value: "" }, t("in “{name}”", { name: collection.name })), h("option", { value: "all" }, t("in all collections")));
  const since = h("select", { class: "input", "aria-label": t("How old") }, SPANS.map(([days, words]) => h("option", { value: String(days) }, words)));
  const results = h("div", { role: "status" });
  let asked = 0;
  const look = async () => {
    const mine = (asked += 1);
    const days = Number(since.value);
    const body = { query, limit: MOST, ...(scope.value ? {} : { collections: [collection.id] }) };
    if (days) body.filters = { since: new Date(Date.now() - days * DAY_MS).toISOString() };
    results.replaceChildren(skeleton(6));
    try {
      const { items } = await post("search/", body);
      if (mine !== asked) return;
      const words = items.length ? tn("{n} passage, the best first", "{n} passages, the best first", items.length) : t("Nothing on this was found here.");
      results.replaceChildren(h("p", { class: "muted small" }, words), h("ol", {}, items.map((item) => found(item, scope.value ? names : new Map()))));
    } catch (error) {
      if (mine === asked) report(results, error, look);
    }
  };
  scope.addEventListener("change", () => void look());
  since.addEventListener("change", () => void look());
  box.replaceChildren(h("section", { class: "passages", "aria-label": t("Passages found") },
    h("header", { class: "passages-head" }, h("h3", {}, t("In the text: “{query}”", { query })), iconButton("x", t("Close the passages"), () => {
      box.replaceChildren();
      closed();
    })), h("div", { class: "passages-scope" }, scope, since), results));
  await look();
}

// What a collection is called, how private it is, and how its documents are cut, tried on one of them before it counts.
import { patch, post } from "../../common/js/api.js";
import { h, report, skeleton } from "../../common/js/dom.js";
import { count } from "../../common/js/format.js";
import { t, tn } from "../../common/js/i18n.js";
import { choice, field, openPanel } from "../../common/js/panel.js";

const SHOWN = 20;
export const LEVELS = [["public", t("public")], ["internal", t("internal")], ["private", t("private")]];

function size(name, label, value, [min, max]) {
  return field(label, h("input", { class: "input num", id: `size-${name}`, name, type: "number", min, max, required: true, value: String(value) }));
}

function chunkNode(chunk) {
  const where = [chunk.page ? t("Page {page}", { page: chunk.page }) : null, chunk.heading, tn("{n} token", "{n} tokens", chunk.tokens)].filter(Boolean).join(" · ");
  return h("li", {}, h("p", { class: "muted small num" }, where), h("p", { class: "passage", dir: "auto" }, chunk.text));
}

/** `documents`: those on screen that are ready, for trying; `changed(collection)` gets the saved one. */
export function openSettings(collection, documents, anchor, changed) {
  const problem = h("div", { hidden: true });
  const name = h("input", { class: "input", id: "set-name", maxlength: "200", required: true, value: collection.name });
  const about = h("input", { class: "input", id: "set-about", maxlength: "2000", value: collection.description ?? "" });
  const level = choice("set-level", LEVELS, collection.level);
  const { chunking } = collection;
  const sizes = h("div", { class: "trio" }, size("size", t("Size"), chunking.size, [50, 450]), size("overlap", t("Overlap"), chunking.overlap, [0, 200]), size("small", t("Small below"), chunking.small, [0, 450]));
  const wanted = () => Object.fromEntries([...sizes.querySelectorAll("input")].map((input) => [input.name, Number(input.value)]));
  const sample = choice("set-sample", documents.map((item) => [item.id, item.name]), documents[0]?.id);
  const shown = h("div", { class: "preview", role: "status" });

  const preview = async () => {
    report(problem, null);
    shown.replaceChildren(skeleton(4));
    try {
      const found = await post(`documents/${sample.value}/preview/`, { chunking: wanted(), limit: SHOWN });
      shown.replaceChildren(h("p", { class: "small" }, tn("It would be cut into {n} passage.", "It would be cut into {n} passages.", found.total, { n: count(found.total) }),
        found.total > SHOWN ? ` ${t("The first {n}:", { n: SHOWN })}` : ""), h("ol", { class: "cuts", tabindex: "0", "aria-label": t("The passages it would be cut into") }, found.chunks.map(chunkNode)));
    } catch (error) {
      shown.replaceChildren();
      report(problem, error);
    }
  };

  const form = h("form", { class: "panel-form", onsubmit: async (event) => {
    event.preventDefault();
    report(problem, null);
    try {
      const made = await patch(`collections/${collection.id}/`, { name: name.value.trim(), description: about.value.trim(), level: level.value, chunking: wanted() });
      panel.hidePopover();
      changed(made);
    } catch (error) {
      report(problem, error);
    }
  } },
    field(t("Name of the collection"), name), field(t("What is in it"), about),
    field(t("Privacy level"), level, t("Its passages go only to models and servers that are cleared for this level.")),
    h("fieldset", {}, h("legend", {}, t("How documents are cut, in tokens")), sizes,
      h("p", { class: "muted small" }, t("New sizes count for what is read from now on; a document that is here already is cut anew when it is read again.")),
      documents.length ? [field(t("Try it on"), sample), h("div", { class: "actions" }, h("button", { type: "button", class: "button compact", onclick: () => form.reportValidity() && void preview() }, t("Show the passages")))] : null, shown),
    problem, h("div", { class: "actions" }, h("button", { type: "submit", class: "button primary" }, t("Save")), h("button", { type: "button", class: "button", onclick: () => panel.hidePopover() }, t("Cancel"))));
  const panel = openPanel(t("Settings of “{name}”", { name: collection.name }), anchor, form, { stays: true });
}

// A panel that opens beside what it belongs to, never over the page; on a phone a sheet from below.
import { h, iconButton } from "./dom.js";
import { t } from "./i18n.js";

/** Open one. `stays`: a click elsewhere leaves it open, for what would lose words that were typed. The focus goes back
 * to `anchor`. */
export function openPanel(title, anchor, content, { stays = false } = {}) {
  const close = () => panel.hidePopover();
  const panel = h("section", { class: "side-panel", popover: stays ? "manual" : "auto", role: "dialog", "aria-label": title },
    h("div", { class: "panel-head" }, h("h2", {}, title), iconButton("x", t("Close"), close)), content);
  panel.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    if (stays) close();
  });
  panel.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    const inside = panel.contains(document.activeElement) || document.activeElement === document.body;
    panel.remove();
    if (inside) anchor?.focus?.();
  });
  // One at a time.
  document.querySelectorAll(".side-panel").forEach((other) => other.hidePopover());
  document.body.append(panel);
  panel.showPopover();
  panel.querySelector("input, select, textarea")?.focus();
  return panel;
}

/** A field with its label; `control` is an element with an id. */
export function field(label, control, hint = null) {
  const note = hint && h("p", { class: "muted small", id: `${control.id}-hint` }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, note);
}

/** A choice of [value, words]. */
export function choice(id, options, chosen, attributes = {}) {
  return h("select", { class: "input", id, ...attributes }, options.map(([value, words]) => h("option", { value, selected: value === chosen || null }, words)));
}

// Finding a conversation by words of its title, questions and answers; the list makes room for what is found.
import { h, icon, skeleton } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";
import { find } from "./shelf-data.js";

const PAUSE_MS = 180;
const field = h("input", { type: "search", class: "input", id: "shelf-search", placeholder: t("Search"), "aria-label": t("Search conversations"),
  autocomplete: "off", spellcheck: "false", maxlength: "500", dir: "auto" });
let timer = 0;
let asked = null;
let found = null;
let problem = null;
let redraw = () => {};

const wanted = () => field.value.trim();

export function active() {
  return Boolean(wanted());
}

export function drop(id) {
  if (found) found.items = found.items.filter((item) => item.id !== id);
}

export function focus() {
  field.focus();
  field.select();
}

async function look(cursor = null) {
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  problem = null;
  try {
    const part = await find(wanted(), { signal, cursor });
    found = cursor ? { items: [...found.items, ...part.items], next: part.next } : part;
  } catch (error) {
    if (error.name === "AbortError") return;
    problem = error;
  }
  redraw();
}

function changed() {
  window.clearTimeout(timer);
  asked?.abort();
  if (!active()) {
    found = null;
    problem = null;
    redraw();
    return;
  }
  timer = window.setTimeout(() => void look(), PAUSE_MS);
  if (!found) redraw();
}

function clear() {
  field.value = "";
  changed();
}

/** What stands in the place of the list while something is looked for. */
export function draw(row) {
  if (problem) {
    return [h("div", { class: "rail-note", role: "alert" }, h("p", { class: "small" }, problem.message),
      h("button", { type: "button", class: "button compact", onclick: () => void look() }, t("Try again")))];
  }
  if (!found) return [skeleton(6)];
  if (!found.items.length) {
    return [h("p", { class: "muted small rail-note", role: "status" }, t("Nothing found. Titles, questions and answers are searched, by the beginnings of words."))];
  }
  const more = found.next
    ? [h("button", { type: "button", class: "rail-link older", onclick: () => void look(found.next) }, icon("down"), t("More"))]
    : [];
  return [h("ol", { class: "found", "aria-label": t("Found") }, found.items.map(row)), ...more];
}

/** The search field; `draw` is called whenever there is something else to show. */
export function start({ draw: drawer, list }) {
  redraw = drawer;
  field.addEventListener("input", changed);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && field.value) {
      event.stopPropagation();
      clear();
    }
    if (event.key === "Enter") list.querySelector(".conversation-link")?.click();
  });
  return h("div", { class: "shelf-search", role: "search" }, icon("search", true), field);
}

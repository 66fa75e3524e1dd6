// The list on the left: pinned ones first, then by last use; found by words, renamed, archived and deleted in place.
import { h, icon, iconButton, skeleton } from "../../common/js/dom.js";
import { daysAgo } from "../../common/js/format.js";
import { locale, t } from "../../common/js/i18n.js";
import { entriesOf, startTools } from "./shelf-menu.js";
import { change, drop as forget, erase as eraseAtServer, load, more as nextPage, place, shelf } from "./shelf-data.js";
import { conversationRow, deleteQuestion, renameField, timeOf, titleOf, turnOf } from "./shelf-row.js";
import * as search from "./shelf-search.js";
import { emit, on, state } from "./state.js";

const box = document.getElementById("conversations");
const list = h("div", { class: "shelf-list" });
const said = h("p", { class: "visually-hidden", role: "status" });
/** Rows by id with what they showed when they were made: a list of thousands is not built anew for one that changed. */
let rows = new Map();
let open = () => {};
let reading = false;

function group(item) {
  const days = daysAgo(timeOf(item));
  if (days <= 0) return t("Today");
  if (days === 1) return t("Yesterday");
  if (days < 7) return t("This week");
  const when = new Date(timeOf(item));
  const year = when.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return days < 31 ? t("This month") : when.toLocaleDateString(locale, { month: "long", ...year });
}

const actions = {
  open: (item) => open(item.id, turnOf(item)),
  entries: (item, node) => entriesOf(item, {
    rename: () => rename(item, node),
    pin: () => void set(item, { pinned: !item.pinned }, item.pinned ? t("Unpinned.") : t("Pinned.")),
    archive: () => void set(item, { archived: !item.archived }, item.archived ? t("Back in the list.") : t("Archived.")),
    ask: () => deleteQuestion(item, node, { erase: () => void erase(item), keep: () => redraw(item.id) }),
  }, node.querySelector("a")),
};

function row(item) {
  const shown = [item.title, item.pinned, item.archived, state.conversation?.id === item.id, JSON.stringify(item.match ?? null)].join("\n");
  const known = rows.get(item.id);
  if (known?.shown === shown) return known.node;
  const node = conversationRow(item, actions);
  rows.set(item.id, { shown, node });
  return node;
}

function redraw(id) {
  rows.delete(id);
  draw();
  list.querySelector(`[data-id="${CSS.escape(id)}"] a`)?.focus();
}

async function set(item, fields, words) {
  try {
    await change(item, fields);
    if (state.conversation?.id === item.id) Object.assign(state.conversation, fields);
    said.textContent = words;
    emit("shelved", item);
  } catch (error) {
    emit("problem", error);
  }
  draw();
}

function rename(item, node) {
  renameField(item, node, async (text) => {
    if (text) {
      try {
        await change(item, { title: text });
        emit("renamed", item);
      } catch (error) {
        emit("problem", error);
      }
    }
    redraw(item.id);
  });
}

async function erase(item) {
  try {
    await eraseAtServer(item);
  } catch (error) {
    emit("problem", error);
    redraw(item.id);
    return;
  }
  rows.delete(item.id);
  search.drop(item.id);
  said.textContent = t("Deleted.");
  draw();
  if (state.conversation?.id === item.id) open(null);
  else list.querySelector("a")?.focus();
}

function groups(items, label) {
  const parts = [];
  let current = null;
  for (const item of items) {
    const name = label ?? group(item);
    if (parts.at(-1)?.name !== name) {
      current = h("ol", { "aria-label": name });
      parts.push({ name, nodes: [h("h2", { class: "rail-label" }, name), current] });
    }
    current.append(row(item));
  }
  return parts.flatMap((part) => part.nodes);
}

function archiveHead() {
  return h("div", { class: "shelf-head" }, iconButton("left", t("Back to all conversations"), () => void show("current")), h("h2", {}, t("Archived")));
}

function emptyWords() {
  return shelf.view === "archived"
    ? t("Nothing is archived. What you archive leaves the list and stays findable.")
    : t("Your conversations will be listed here.");
}

export function draw() {
  if (search.active()) {
    list.replaceChildren(...search.draw(row));
    return;
  }
  const archived = shelf.view === "archived";
  const parts = [...(archived ? [archiveHead()] : []), ...groups(shelf.pinned, t("Pinned")), ...groups(shelf.items)];
  if (!shelf.pinned.length && !shelf.items.length) parts.push(h("p", { class: "muted small rail-note" }, emptyWords()));
  if (shelf.next) parts.push(h("button", { type: "button", class: "rail-link older", onclick: () => void older() }, icon("down"), t("Show older")));
  if (!archived) parts.push(h("button", { type: "button", class: "rail-link archive", onclick: () => void show("archived") }, icon("archive"), t("Archived")));
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  list.replaceChildren(...parts);
  if (focused?.isConnected) focused.focus({ preventScroll: true });
  const end = list.querySelector(".older");
  if (end) nearEnd.observe(end);
}

const nearEnd = new IntersectionObserver((seen) => {
  if (seen.some((entry) => entry.isIntersecting)) void older();
}, { root: box.closest(".rail-body"), rootMargin: "400px" });

async function older() {
  if (reading || !shelf.next) return;
  reading = true;
  try {
    await nextPage();
    draw();
  } catch (error) {
    const end = list.querySelector(".older");
    nearEnd.disconnect();
    end?.before(h("p", { class: "small rail-note", role: "alert" }, error.message));
  } finally {
    reading = false;
  }
}

function failed(error, view) {
  list.replaceChildren(h("div", { class: "rail-note", role: "alert" }, h("p", { class: "small" }, error.message),
    h("button", { type: "button", class: "button compact", onclick: () => void show(view) }, t("Try again"))));
}

/** Read and show `current` or `archived`. */
async function show(view) {
  const slow = window.setTimeout(() => list.replaceChildren(skeleton(8)), 150);
  try {
    await load(view);
    rows = new Map();
    draw();
  } catch (error) {
    if (!error.code) throw error;
    failed(error, view);
    window.addEventListener("connection:back", () => void show(view), { once: true });
  } finally {
    window.clearTimeout(slow);
  }
}

/** Put a new or just used conversation on top. */
export function touch(conversation) {
  place({ ...conversation, updated_at: new Date().toISOString() });
  draw();
}

/** Take a conversation off the list that was made in vain. */
export function drop(id) {
  forget(id);
  draw();
}

/** Move the focus by rows; from outside the list it begins at the open conversation. */
export function moveFocus(step) {
  const links = [...list.querySelectorAll(".conversation-link")];
  const at = links.indexOf(document.activeElement?.closest(".conversation")?.querySelector(".conversation-link"));
  const current = links.findIndex((link) => link.getAttribute("aria-current"));
  const next = at < 0 ? Math.max(0, current) : Math.min(links.length - 1, Math.max(0, at + step));
  links[next]?.focus();
}

export { focus as focusSearch } from "./shelf-search.js";
export { titleOf };

export async function start(opener) {
  open = opener;
  startTools();
  on("conversation", draw);
  box.replaceChildren(search.start({ draw, list }), list, said);
  box.addEventListener("keydown", (event) => {
    if (event.target.matches("input") && event.key !== "ArrowDown") return;
    if (event.key === "j" || event.key === "ArrowDown") moveFocus(1);
    else if (event.key === "k" || event.key === "ArrowUp") moveFocus(-1);
    else return;
    event.preventDefault();
  });
  await show("current");
}

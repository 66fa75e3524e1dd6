// The list on the left: newest first by day, renamed and deleted in place.
import { page, patch, remove } from "../../common/js/api.js";
import { h, icon, iconButton, skeleton } from "../../common/js/dom.js";
import { daysAgo, exactTime } from "../../common/js/format.js";
import { emit, on, remember, state } from "./state.js";

const box = document.getElementById("conversations");
let items = [];
let next = null;
let open = () => {};

const title = (item) => item.title || "Untitled conversation";
const time = (item) => item.updated_at ?? item.created_at;

function group(item) {
  const days = daysAgo(time(item));
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return days < 7 ? "This week" : days < 31 ? "This month" : "Earlier";
}

function row(item) {
  const current = state.conversation?.id === item.id;
  const link = h("a", {
    href: `/c/${item.id}/`, class: "conversation-link", "aria-current": current ? "page" : null, title: `${title(item)}\n${exactTime(time(item))}`, dir: "auto",
    onclick: (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      open(item.id);
    },
  }, title(item));
  const node = h("li", { class: "conversation", data: { id: item.id } }, link);
  node.append(h("span", { class: "conversation-actions" },
    iconButton("edit", `Rename ${title(item)}`, () => rename(item, node)),
    iconButton("trash", `Delete ${title(item)}`, () => confirmDelete(item, node))));
  return node;
}

function rename(item, node) {
  const input = h("input", { class: "input", value: title(item), "aria-label": "New title", maxlength: "200" });
  let done = false;
  const finish = async (save) => {
    if (done) return;
    done = true;
    const text = input.value.trim();
    if (save && text && text !== item.title) {
      const before = item.title;
      item.title = text;
      await patch(`conversations/${item.id}/`, { title: text }).catch((error) => {
        item.title = before;
        emit("problem", error);
      });
      emit("renamed", item);
    }
    draw();
    box.querySelector(`[data-id="${CSS.escape(item.id)}"] a`)?.focus();
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") void finish(true);
    if (event.key === "Escape") {
      event.stopPropagation();
      void finish(false);
    }
  });
  input.addEventListener("blur", () => void finish(true));
  node.replaceChildren(input);
  input.select();
}

function confirmDelete(item, node) {
  const yes = h("button", { type: "button", class: "button compact danger", onclick: () => void erase(item) }, "Delete");
  const no = h("button", { type: "button", class: "button compact", onclick: () => draw() }, "Keep");
  node.classList.add("asking");
  node.replaceChildren(h("p", { class: "small" }, `Delete “${title(item)}” for good?`), h("div", { class: "row" }, yes, no));
  no.focus();
}

async function erase(item) {
  try {
    await remove(`conversations/${item.id}/`);
  } catch (error) {
    if (error.status !== 404) {
      emit("problem", error);
      draw();
      return;
    }
  }
  items = items.filter((other) => other.id !== item.id);
  remember(`draft:${item.id}`, null);
  draw();
  if (state.conversation?.id === item.id) open(null);
}

export function draw() {
  if (!items.length) {
    box.replaceChildren(h("p", { class: "muted small rail-note" }, "Your conversations will be listed here."));
    return;
  }
  const parts = [];
  let label = null;
  let list = null;
  for (const item of items) {
    if (group(item) !== label) {
      label = group(item);
      list = h("ol", {});
      parts.push(h("h2", { class: "rail-label" }, label), list);
    }
    list.append(row(item));
  }
  if (next) parts.push(h("button", { type: "button", class: "rail-link", onclick: () => void more() }, icon("down"), "Show older"));
  box.replaceChildren(...parts);
}

async function more() {
  try {
    const part = await page("conversations/", { cursor: next });
    items.push(...part.items.filter((item) => !items.some((known) => known.id === item.id)));
    next = part.next;
    draw();
  } catch (error) {
    emit("problem", error);
  }
}

/** Put a new or just used conversation on top. */
export function touch(conversation) {
  items = [{ ...conversation, updated_at: new Date().toISOString() }, ...items.filter((item) => item.id !== conversation.id)];
  draw();
}

/** Take a conversation off the list that was made in vain. */
export function drop(id) {
  items = items.filter((item) => item.id !== id);
  draw();
}

function moveFocus(step) {
  const links = [...box.querySelectorAll(".conversation-link")];
  const at = links.indexOf(document.activeElement);
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + step))]?.focus();
}

export async function start(opener) {
  open = opener;
  on("conversation", draw);
  box.addEventListener("keydown", (event) => {
    if (event.target.matches("input")) return;
    if (event.key === "j" || event.key === "ArrowDown") moveFocus(1);
    else if (event.key === "k" || event.key === "ArrowUp") moveFocus(-1);
    else return;
    event.preventDefault();
  });
  const slow = window.setTimeout(() => box.replaceChildren(skeleton(6)), 150);
  try {
    const part = await page("conversations/");
    items = part.items;
    next = part.next;
    draw();
  } catch (error) {
    box.replaceChildren(h("p", { class: "small rail-note" }, error.message));
  } finally {
    window.clearTimeout(slow);
  }
}

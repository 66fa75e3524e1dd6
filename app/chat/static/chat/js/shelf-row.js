// One conversation in the list: its link, its menu, and what takes its place while it is renamed or about to go.
import { h, iconButton } from "../../common/js/dom.js";
import { exactTime } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { openMenu } from "../../common/js/menu.js";
import { state } from "./state.js";

export const titleOf = (item) => item.title || t("Untitled conversation");
/** The address of a conversation; of the very turn where it was found by words of one. */
export const addressOf = (id, turn) => (turn ? `/c/${id}/#turn=${turn}` : `/c/${id}/`);
export const turnOf = (item) => (item.match && item.match.where !== "title" ? item.match.turn_id : null);
export const timeOf = (item) => item.updated_at ?? item.created_at;

function snippet(item) {
  if (!item.match || item.match.where === "title") return null;
  return h("span", { class: "snippet" }, item.match.snippet.map(({ text, hit }) => (hit ? h("mark", {}, text) : text)));
}

function heading(item) {
  if (item.match?.where !== "title") return titleOf(item);
  return item.match.snippet.map(({ text, hit }) => (hit ? h("mark", {}, text) : text));
}

/** `actions`: {open(item), rename(item, node), ask(item, node), entries(item, node)}. */
export function conversationRow(item, actions) {
  const current = state.conversation?.id === item.id;
  const title = titleOf(item);
  const link = h("a", {
    href: addressOf(item.id, turnOf(item)), class: "conversation-link", "aria-current": current ? "page" : null,
    title: `${title}\n${exactTime(timeOf(item))}`, dir: "auto",
    onclick: (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      actions.open(item);
    },
  }, h("span", { class: "conversation-title" }, heading(item)), item.match && item.archived ? h("span", { class: "tag" }, t("archived")) : null, snippet(item));
  const node = h("li", { class: "conversation", data: { id: item.id } }, link);
  const button = iconButton("more", t("More for {title}", { title }), () => openMenu(button, title, actions.entries(item, node)),
    { class: "conversation-more", "aria-haspopup": "menu", "aria-expanded": "false" });
  node.append(button);
  return node;
}

/** A field in place of the title. Calls `done(text)` once: null when it was given up. */
export function renameField(item, node, done) {
  const input = h("input", { class: "input", value: titleOf(item), "aria-label": t("New title"), maxlength: "200", dir: "auto" });
  let over = false;
  const finish = (text) => {
    if (over) return;
    over = true;
    done(text && text !== item.title ? text : null);
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") finish(input.value.trim());
    if (event.key !== "Escape") return;
    event.stopPropagation();
    finish(null);
  });
  input.addEventListener("blur", () => finish(input.value.trim()));
  node.replaceChildren(input);
  input.focus();
  input.select();
}

/** The question before a conversation is deleted, in its own place. */
export function deleteQuestion(item, node, { erase, keep }) {
  const yes = h("button", { type: "button", class: "button compact danger", onclick: erase }, t("Delete"));
  const no = h("button", { type: "button", class: "button compact", onclick: keep }, t("Keep"));
  node.classList.add("asking");
  node.replaceChildren(
    h("p", { class: "small" }, t("Delete “{title}” for good? Its shared links end with it.", { title: titleOf(item) })),
    h("div", { class: "row" }, yes, no));
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    keep();
  });
  no.focus();
}

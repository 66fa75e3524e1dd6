// What the list on the left knows: pinned ones, the others by last use in pages, or those of the archive.
import { get, patch, remove } from "../../common/js/api.js";
import { remember } from "./state.js";

const PAGE = 50;
const MOST_PINNED = 200;

export const shelf = { view: "current", pinned: [], items: [], next: null };

function list(query, signal) {
  return get(`conversations/?${new URLSearchParams({ sort: "updated", ...query })}`, { signal });
}

/** Read the first page of what is shown: `current` or `archived`. Throws ApiError. */
export async function load(view = shelf.view) {
  const archived = view === "archived";
  const [pinned, rest] = await Promise.all([
    archived ? { items: [] } : list({ archived: "false", pinned: "true", limit: String(MOST_PINNED) }),
    list(archived ? { archived: "true", limit: String(PAGE) } : { archived: "false", pinned: "false", limit: String(PAGE) }),
  ]);
  Object.assign(shelf, { view, pinned: pinned.items, items: rest.items, next: rest.next });
}

/** The next page. Throws ApiError. */
export async function more() {
  const { view, next } = shelf;
  const query = view === "archived" ? { archived: "true" } : { archived: "false", pinned: "false" };
  const part = await list({ ...query, limit: String(PAGE), cursor: next });
  if (view !== shelf.view || next !== shelf.next) return;
  const known = new Set(shelf.items.map((item) => item.id));
  shelf.items.push(...part.items.filter((item) => !known.has(item.id)));
  shelf.next = part.next;
}

/** Conversations that have these words, the archived ones too: {items, next}. Throws ApiError. */
export function find(text, { signal, cursor = null } = {}) {
  return list({ q: text, limit: "30", ...(cursor ? { cursor } : {}) }, signal);
}

function without(id) {
  shelf.pinned = shelf.pinned.filter((item) => item.id !== id);
  shelf.items = shelf.items.filter((item) => item.id !== id);
}

const newestFirst = (a, b) => (b.updated_at > a.updated_at ? 1 : b.updated_at < a.updated_at ? -1 : 0);

/** Put a conversation where it belongs in what is shown. */
export function place(item) {
  without(item.id);
  if (Boolean(item.archived) !== (shelf.view === "archived")) return;
  const into = item.pinned && shelf.view === "current" ? shelf.pinned : shelf.items;
  into.push(item);
  into.sort(newestFirst);
}

export function drop(id) {
  without(id);
}

/** Change fields at the server and then here. Throws ApiError; nothing changes then. */
export async function change(item, fields) {
  const changed = await patch(`conversations/${item.id}/`, fields);
  Object.assign(item, changed);
  place(item);
  return item;
}

/** Delete for good; one that is gone already counts as deleted. Throws ApiError. */
export async function erase(item) {
  try {
    await remove(`conversations/${item.id}/`);
  } catch (error) {
    if (error.status !== 404) throw error;
  }
  without(item.id);
  remember(`draft:${item.id}`, null);
}

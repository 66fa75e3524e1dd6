// A conversation is a tree of messages: editing a question starts a branch beside it. Pure functions over a Map by id.

const FINAL = new Set(["completed", "done", "stopped", "interrupted", "failed"]);

/** An answer that the server is still working on. */
export function isRunning(message) {
  return message.role === "assistant" && !message.finish_reason && !message.error && !FINAL.has(message.state);
}

function byAge(a, b) {
  return a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.id < b.id ? -1 : 1;
}

export function children(messages, parentId) {
  return [...messages.values()].filter((message) => (message.parent_id ?? null) === parentId).sort(byAge);
}

/** Root to leaf; starts later when earlier messages are not loaded yet. */
export function branch(messages, leafId) {
  const path = [];
  for (let at = messages.get(leafId); at; at = messages.get(at.parent_id)) path.unshift(at);
  return path;
}

/** The newest leaf at or below a message (null: of the whole conversation). */
export function newestLeaf(messages, fromId = null) {
  if (fromId === null) {
    const newest = [...messages.values()].sort(byAge).at(-1);
    return newest ? newestLeaf(messages, newest.id) : null;
  }
  let at = fromId;
  for (let next = children(messages, at); next.length; next = children(messages, at)) at = next.at(-1).id;
  return at;
}

/** Versions of the same question: [{id}...] in order, the message itself among them. */
export function versions(messages, message) {
  return message.role === "user" ? children(messages, message.parent_id ?? null).filter((m) => m.role === "user") : [message];
}

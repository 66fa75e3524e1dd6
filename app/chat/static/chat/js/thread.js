// The thread: loads messages, draws the branch on screen, follows the end only while the reader is there.
import { get, page } from "../../common/js/api.js";
import { failed, h, iconButton, skeleton } from "../../common/js/dom.js";
import { ago, exactTime } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { asNotice } from "./answer.js";
import { AnswerView } from "./answer-view.js";
import { fileLinks, filesOf } from "./attach.js";
import { emptyState } from "./empty.js";
import { emit, state } from "./state.js";
import { branch, newestLeaf, versions } from "./tree.js";

const scroller = document.getElementById("thread-scroll");
const thread = document.getElementById("thread");
const pill = document.getElementById("new-text");
/** Pixels above a turn that was looked for, and frames until its place is final. */
const ABOVE = 16;
const SETTLING = 12;
let views = new Map();
let actions = {};
let following = true;
let lastTop = 0;

function atEnd() {
  return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
}

/** After something grew: go along, or say that there is more below. */
export function follow({ force = false } = {}) {
  if (force) following = true;
  if (following) scroller.scrollTop = scroller.scrollHeight;
  if (following || atEnd()) pill.hidden = true;
  else if (state.turn?.id) pill.hidden = false;
}

function questionView(message) {
  const all = versions(state.messages, message);
  const at = all.findIndex((item) => item.id === message.id);
  const go = (step) => () => actions.showVersion(all[at + step]);
  const switcher = all.length > 1
    ? h("span", { class: "versions num" },
        iconButton("left", t("Earlier version"), go(-1), { disabled: at === 0 }), `${at + 1} / ${all.length}`,
        iconButton("right", t("Later version"), go(1), { disabled: at === all.length - 1 }))
    : null;
  const earlier = state.messages.get(state.messages.get(message.parent_id)?.parent_id)?.attachments;
  return h("div", { class: "question", data: { id: message.id } },
    h("h2", { class: "visually-hidden" }, t("You asked")), fileLinks(filesOf(message, earlier)) ?? "",
    h("p", { class: "question-text", dir: "auto" }, message.text),
    h("div", { class: "question-foot" }, switcher,
      h("time", { datetime: message.created_at, title: exactTime(message.created_at) }, ago(message.created_at)),
      iconButton("edit", t("Edit this question"), () => actions.edit(message))));
}

function answerView(message) {
  const question = state.messages.get(message.parent_id);
  const asked = question?.collections ?? state.conversation?.collections ?? [];
  const view = new AnswerView(message, actions, asked);
  views.set(message.id, view);
  return view.node;
}

function node(message) {
  return message.role === "user" ? questionView(message) : answerView(message);
}

function earlierButton() {
  return h("button", { type: "button", class: "button compact earlier", onclick: () => void loadEarlier() }, t("Show earlier messages"));
}

/** Draw the branch that ends at state.leaf. */
export function draw() {
  views = new Map();
  const path = branch(state.messages, state.leaf);
  if (!path.length) thread.replaceChildren(emptyState(actions));
  else thread.replaceChildren(...(state.earlier ? [earlierButton()] : []), ...path.map(node));
  emit("drawn");
}

/** Add messages at the end without touching what stands above. */
export function append(messages) {
  if (!views.size && !thread.querySelector(".question")) thread.replaceChildren();
  thread.append(...messages.map(node));
}

export function viewOf(id) {
  return views.get(id);
}

function keep(items) {
  for (const item of items) {
    state.messages.set(item.id, { notices: [], sources: [], quotes: [], reasoning: "", text: "", ...normal(item) });
  }
}

function normal(item) {
  // Null lists and notices given as plain words are made alike once, here.
  const lists = Object.fromEntries(["sources", "quotes", "notices", "attachments"].map((name) => [name, item[name] ?? []]));
  const notices = lists.notices.map(asNotice);
  const price = item.price ?? item.usage?.price ?? null;
  return { ...item, ...lists, notices, price, epoch: 0, text: item.text ?? "", reasoning: item.reasoning ?? "" };
}

function questionNode(id) {
  return thread.querySelector(`.question[data-id="${CSS.escape(id)}"]`);
}

/** Draw a question anew, when something about it became known. */
export function redrawQuestion(message) {
  questionNode(message.id)?.replaceWith(questionView(message));
}

async function loadEarlier() {
  const height = scroller.scrollHeight;
  const shown = branch(state.messages, state.leaf);
  const part = await page(`conversations/${state.conversation.id}/messages/`, { cursor: state.earlier });
  keep(part.items);
  state.earlier = part.next;
  const path = branch(state.messages, state.leaf);
  const fresh = path.slice(0, path.length - shown.length).map(node);
  // Answers on the page stay as they are; questions may have gained a version among the older messages.
  for (const message of shown) if (message.role === "user") questionNode(message.id)?.replaceWith(questionView(message));
  thread.querySelector(".earlier")?.remove();
  thread.prepend(...(state.earlier ? [earlierButton()] : []), ...fresh);
  scroller.scrollTop += scroller.scrollHeight - height;
}

function messagesOf(turn) {
  return [...state.messages.values()].filter((message) => message.turn_id === turn);
}

/** Read back until a turn is there. Everything between it and the end comes along: branches need their ends. */
async function reach(turn) {
  while (state.earlier && !messagesOf(turn).length) {
    const part = await page(`conversations/${state.conversation.id}/messages/`, { limit: 200, cursor: state.earlier });
    keep(part.items);
    state.earlier = part.next;
  }
  return messagesOf(turn);
}

/** Bring a turn into view and mark it, until something else is drawn. Returns whether it is on the page. */
function showTurn(found) {
  const [question, answer] = ["user", "assistant"].map((role) => found.find((message) => message.role === role));
  const first = question && questionNode(question.id);
  if (!first) return false;
  following = false;
  first.classList.add("found-turn");
  viewOf(answer?.id)?.node.classList.add("found-turn");
  first.tabIndex = -1;
  first.focus({ preventScroll: true });
  bringUp(first, SETTLING);
  return true;
}

/** Answers above are as high as was guessed until they come near the screen, so look again for some frames. */
function bringUp(node, frames) {
  scroller.scrollTop += node.getBoundingClientRect().top - scroller.getBoundingClientRect().top - ABOVE;
  if (frames) window.requestAnimationFrame(() => bringUp(node, frames - 1));
}

/** Open a conversation: its head and newest messages, at the end or at one of its turns. Throws ApiError. */
export async function load(conversationId, turn = null) {
  clear();
  let found = [];
  const slow = window.setTimeout(() => thread.replaceChildren(skeleton(6)), 150);
  try {
    const [conversation, part] = await Promise.all([
      get(`conversations/${conversationId}/`),
      page(`conversations/${conversationId}/messages/`),
    ]);
    state.conversation = conversation;
    keep(part.items);
    state.earlier = part.next;
    found = turn ? await reach(turn) : [];
    state.leaf = newestLeaf(state.messages, found.find((message) => message.role === "assistant")?.id ?? null);
  } finally {
    window.clearTimeout(slow);
  }
  draw();
  if (!showTurn(found)) follow({ force: true });
}

/** After a turn: take the server's own ids, price and times for the messages just made. */
export async function reconcile(questionId, answerId, turnId) {
  const part = await page(`conversations/${state.conversation.id}/messages/`, { limit: 10 });
  const own = part.items.filter((item) => item.turn_id === turnId);
  if (own.length < 2) return;
  const answered = own.find((item) => item.role === "assistant");
  const view = views.get(answerId);
  state.messages.delete(questionId);
  state.messages.delete(answerId);
  keep(own);
  state.leaf = newestLeaf(state.messages, answered.id);
  questionNode(questionId)?.replaceWith(questionView(own.find((item) => item.role === "user")));
  if (!view) return;
  views.delete(answerId);
  views.set(answered.id, view);
  view.answer = { ...view.answer, ...state.messages.get(answered.id), searched: view.answer.searched };
  view.refresh();
}

export function clear() {
  state.conversation = null;
  state.messages = new Map();
  state.leaf = null;
  state.earlier = null;
  views = new Map();
  thread.replaceChildren();
}

export function showFailure(message, retry) {
  thread.replaceChildren(failed({ message }, retry));
}

export function start(given) {
  actions = given;
  scroller.addEventListener("scroll", () => {
    // Only the reader scrolls up; text that grew between two scrolls must not count as leaving the end.
    if (atEnd()) following = true;
    else if (scroller.scrollTop < lastTop - 2) following = false;
    lastTop = scroller.scrollTop;
    if (following) pill.hidden = true;
  }, { passive: true });
  pill.addEventListener("click", () => follow({ force: true }));
  new ResizeObserver(() => follow()).observe(thread);
}

// The question box: grows to eight lines, keeps a draft per conversation, sends on Enter, stops on Escape.
import { ApiError, post } from "../../common/js/api.js";
import { h, icon } from "../../common/js/dom.js";
import { locale, t } from "../../common/js/i18n.js";
import * as attach from "./attach.js";
import { emit, on, recall, remember, state } from "./state.js";
import { branch } from "./tree.js";

const form = document.getElementById("composer");
const box = document.getElementById("composer-text");
const sendButton = document.getElementById("send");
const stopButton = document.getElementById("stop");
const problem = document.getElementById("composer-problem");
const editing = document.getElementById("composer-editing");
const LINES = 8;
let handlers = {};
/** The question being edited ({id, parent_id}), or null for a new one. */
let edited = null;
let composing = false;

function draftKey() {
  return `draft:${state.conversation?.id ?? "new"}`;
}

function grow() {
  box.style.height = "auto";
  const line = Number.parseFloat(getComputedStyle(box).lineHeight);
  box.style.height = `${Math.min(box.scrollHeight, Math.ceil(line * LINES) + 24)}px`;
}

function changed() {
  grow();
  drawSend();
  if (!edited) remember(draftKey(), box.value || null);
  emit("draft", box.value);
}

function drawSend() {
  sendButton.disabled = !box.value.trim() || Boolean(state.turn) || Boolean(attach.blocked());
  sendButton.title = attach.blocked() || t("Send (Enter)");
}

/** The question that is being edited, or null. */
export function editedQuestion() {
  return edited;
}

export function text() {
  return box.value;
}

export function setText(value, { focus = true } = {}) {
  box.value = value;
  changed();
  if (!focus) return;
  box.focus();
  box.setSelectionRange(value.length, value.length);
}

export function focus() {
  // On a touch screen, focus would open the keyboard over the page that the reader came for.
  if (window.matchMedia("(pointer: fine)").matches) box.focus();
}

/** Say what went wrong right where the text is. `retry` repeats the sending. */
export function showProblem(error, retry = null) {
  // The same words would be refused for their form once more; they have to be changed first.
  const again = retry && error.status !== 422 ? h("button", { type: "button", class: "button compact", onclick: retry }, t("Try again")) : null;
  const more = moreButton(error);
  const actions = again || more ? h("div", { class: "actions" }, again, more) : null;
  problem.replaceChildren(h("div", { class: error.status === 402 || error.status === 429 ? "callout warn" : "callout bad" },
    icon("alert"), h("div", { class: "grow" }, h("p", {}, error.message), limitLine(error), actions)));
  problem.hidden = false;
}

/** Asks whoever may raise the limit that refused. */
function moreButton(error) {
  const limit = error.status === 402 ? error.detail?.limit_id : null;
  if (!limit) return null;
  const team = state.conversation?.team?.id ?? state.choice.team ?? undefined;
  return h("button", { type: "button", class: "button compact", onclick: async ({ currentTarget: button }) => {
    button.disabled = true;
    try {
      await post("limit-requests/", { limit_id: limit, ...(team ? { team } : {}) });
      button.replaceWith(h("span", { class: "muted", role: "status" }, t("Asked. {raised_by} can raise it until it resets.", { raised_by: error.detail.raised_by ?? t("Whoever sets the limit") })));
    } catch (refused) {
      if (!(refused instanceof ApiError)) throw refused;
      button.replaceWith(h("span", { class: "muted", role: "status" }, refused.message));
    }
  } }, t("Ask for more"));
}

function limitLine({ detail, message }) {
  if (!detail?.resets_at || /\breset/i.test(message)) return null;
  const when = new Date(detail.resets_at);
  return h("p", { class: "muted" }, t("It resets on {when}.", { when: when.toLocaleString(locale, { day: "numeric", month: "long", hour: "2-digit", minute: "2-digit", timeZoneName: "short" }) }));
}

export function clearProblem() {
  problem.hidden = true;
  problem.replaceChildren();
}

export function beginEdit(message) {
  edited = message;
  editing.hidden = false;
  attach.use(attach.filesOf(message, before(message)));
  setText(message.text);
}

/** Attachments of the question before this one, which its branch has in any case. */
function before(message) {
  const answer = state.messages.get(message.parent_id);
  return state.messages.get(answer?.parent_id)?.attachments;
}

function endEdit() {
  edited = null;
  editing.hidden = true;
}

function cancelEdit() {
  endEdit();
  void attach.restore();
  setText(recall(draftKey(), ""));
}

/** Empty the box, but forget the kept draft only when the server has taken the question. */
export function take() {
  const question = { text: box.value.trim(), edited, attachments: attach.ids() };
  endEdit();
  box.value = "";
  grow();
  sendButton.disabled = true;
  emit("draft", "");
  return question;
}

export function accepted({ files = true } = {}) {
  if (files) attach.accepted();
  remember(draftKey(), box.value || null);
  clearProblem();
}

/** Put a question back that could not be sent, unless something new was typed meanwhile. */
export function giveBack(question) {
  edited = question.edited;
  editing.hidden = !edited;
  if (!box.value.trim()) setText(question.text);
}

// Somebody may begin to type before the scripts are there; that text is theirs.
let typedBefore = box.value;

export function restoreDraft() {
  endEdit();
  clearProblem();
  void attach.restore();
  setText(typedBefore || recall(draftKey(), ""), { focus: false });
  typedBefore = "";
}

function lastQuestion() {
  return branch(state.messages, state.leaf).findLast((message) => message.role === "user");
}

function submit() {
  if (!box.value.trim()) return;
  if (state.turn) return;
  if (attach.blocked()) {
    showProblem(new ApiError({ code: "attachment_not_ready", message: attach.blocked(), status: 409 }));
    return;
  }
  handlers.send();
}

function keydown(event) {
  if (event.key === "Enter" && !event.shiftKey && !composing && !event.isComposing) {
    event.preventDefault();
    submit();
  } else if (event.key === "ArrowUp" && !box.value && !state.turn) {
    const last = lastQuestion();
    if (last) {
      event.preventDefault();
      beginEdit(last);
    }
  } else if (event.key === "Escape" && edited && !state.turn) {
    event.stopPropagation();
    cancelEdit();
  }
}

function turnChanged() {
  const running = Boolean(state.turn);
  stopButton.hidden = !running;
  sendButton.hidden = running;
  stopButton.disabled = Boolean(state.turn?.stopping);
  stopButton.title = state.turn?.stopping ? t("Stopping") : t("Stop (Esc)");
  drawSend();
}

export function start(given) {
  handlers = given;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  box.addEventListener("input", changed);
  box.addEventListener("keydown", keydown);
  box.addEventListener("compositionstart", () => (composing = true));
  box.addEventListener("compositionend", () => (composing = false));
  stopButton.addEventListener("click", () => handlers.stop());
  document.getElementById("cancel-edit").addEventListener("click", cancelEdit);
  window.addEventListener("resize", grow);
  on("attachments", () => {
    if (!attach.blocked()) clearProblem();
    drawSend();
  });
  on("turn", turnChanged);
  turnChanged();
}

// From a typed question to a finished answer: makes the conversation, follows the turn, keeps the text safe.
import { ApiError, get, post, remove, uniqueKey } from "../../common/js/api.js";
import { t } from "../../common/js/i18n.js";
import { apply, newAnswer } from "./answer.js";
import * as attach from "./attach.js";
import * as composer from "./composer.js";
import * as conversations from "./conversations.js";
import { emit, ready, remember, state } from "./state.js";
import * as thread from "./thread.js";
import { isRunning, newestLeaf } from "./tree.js";
import { TurnFollower } from "./turn.js";

const TITLE_MS = 6000;
let serial = 0;
let followed = null;
/** Conversations that this page made before there was a question. */
const made = new Set();
/** What was last sent without an answer, so that sending the same again cannot ask twice. */
let unsent = null;

function localId() {
  serial += 1;
  return `local-${serial}`;
}

function shortTitle(text) {
  const line = text.split("\n", 1)[0].trim();
  return line.length > 80 ? `${line.slice(0, 79)}…` : line;
}

/** Says whether the conversation was made just now. The server names it by its first question. */
export async function ensureConversation(text = "") {
  // Somebody quick may ask while the models are still being loaded: without one the server would refuse.
  await ready;
  if (state.conversation) return false;
  const { model, assistant, collections, team } = state.choice;
  const body = { model, collections };
  if (assistant) body.assistant = assistant;
  if (team) body.team = team;
  state.conversation = await post("conversations/", body);
  remember("draft:new", null);
  remember(`draft:${state.conversation.id}`, text || composer.text() || null);
  window.history.pushState({}, "", `/c/${state.conversation.id}/`);
  made.add(state.conversation.id);
  conversations.touch(state.conversation);
  emit("conversation");
  return true;
}

/** A conversation that this page made for a file, and that is left without a word or a file, is forgotten. */
export async function forgetAbandoned() {
  const { conversation, messages } = state;
  if (!conversation || !made.has(conversation.id) || messages.size || attach.any() || composer.text().trim()) return;
  made.delete(conversation.id);
  remember(`draft:${conversation.id}`, null);
  conversations.drop(conversation.id);
  await forget(conversation.id);
}

async function forget(id) {
  try {
    await remove(`conversations/${id}/`);
  } catch (error) {
    // It stays in the list after a reload; nothing else hangs on it.
    if (!(error instanceof ApiError)) throw error;
  }
}

/** Until the server's own title is known, the beginning of the first question stands for it. */
function nameBy(text) {
  if (state.conversation.title) return;
  state.conversation.title = shortTitle(text);
  conversations.touch(state.conversation);
  emit("conversation");
}

/** A first question that was refused leaves no empty conversation behind. */
async function forgetEmpty() {
  const { id } = state.conversation;
  remember(`draft:${id}`, null);
  state.conversation = null;
  window.history.replaceState({}, "", "/");
  conversations.drop(id);
  emit("conversation");
  await forget(id);
}

function setTurn(turn) {
  state.turn = turn;
  emit("turn");
}

function place(text, parentId, attachments) {
  const asked = { id: localId(), role: "user", parent_id: parentId, text, attachments, collections: state.choice.collections, created_at: new Date().toISOString() };
  const answer = newAnswer({ id: localId(), model: state.choice.model, parentId: asked.id });
  state.messages.set(asked.id, asked);
  state.messages.set(answer.id, answer);
  const branched = parentId !== state.leaf;
  state.leaf = answer.id;
  if (branched) thread.draw();
  else thread.append([asked, answer]);
  thread.follow({ force: true });
  return { asked, answer };
}

function takeBack(asked, answer, parentId) {
  state.messages.delete(asked.id);
  state.messages.delete(answer.id);
  state.leaf = parentId === null ? newestLeaf(state.messages) : newestLeaf(state.messages, parentId);
  thread.draw();
}

/** `parent` is the turn whose answer this question follows, named each time, so that the branch on screen goes on. */
function requestBody(text, parentId, attachments) {
  const parent = state.messages.get(parentId)?.turn_id ?? null;
  const body = { text, parent, model: state.choice.model, collections: state.choice.collections };
  return attachments.length ? { ...body, attachments } : body;
}

function keyFor(body) {
  const print = JSON.stringify([state.conversation.id, body]);
  if (unsent?.print !== print) unsent = { print, key: uniqueKey() };
  return unsent.key;
}

/** Follow a turn whose answer is on the page. Resolves when it ended or was left. */
async function follow(answer, options) {
  // Stop may have been pressed before there was anything to follow.
  const turn = { id: answer.turn_id, stopping: Boolean(state.turn?.stopping) };
  const follower = new TurnFollower({
    conversationId: state.conversation.id,
    turnId: answer.turn_id,
    ...options,
    onEvent(name, data) {
      const ended = apply(answer, name, data);
      if (name === "turn") {
        turn.id = data.turn_id;
        unsent = null;
        if (turn.stopping) void stopAt(turn);
        options.onAccepted?.(data);
      }
      thread.viewOf(answer.id)?.update(name);
      return ended;
    },
    onBroken: (tries) => thread.viewOf(answer.id)?.drawPhase(tries),
  });
  followed = follower;
  setTurn(turn);
  try {
    await follower.run();
  } finally {
    if (followed === follower) {
      followed = null;
      setTurn(null);
    }
  }
  return !follower.abort.signal.aborted;
}

function fail(answer, error) {
  answer.error = { message: error.message, request_id: error.requestId };
  answer.state = "failed";
  thread.viewOf(answer.id)?.refresh();
}

/** Take over the title that the server has by now. */
async function retitle(id) {
  const { title } = await get(`conversations/${id}/`);
  if (state.conversation?.id !== id || title === state.conversation.title) return;
  state.conversation.title = title;
  conversations.touch(state.conversation);
  emit("conversation");
}

async function settle(asked, answer) {
  conversations.touch(state.conversation);
  const { id } = state.conversation;
  try {
    await thread.reconcile(asked.id, answer.id, answer.turn_id);
    await retitle(id);
    // A model that gives titles may still be thinking about this one.
    if (!asked.parent_id) window.setTimeout(() => void retitle(id).catch(() => {}), TITLE_MS);
  } catch (error) {
    // The answer is complete on the page; only the server's own times and ids are missing until a reload.
    if (!(error instanceof ApiError)) throw error;
  }
}

/** Send a question: what the composer holds, or `given` ({text, edited}). */
export async function send(given = null) {
  if (state.turn) return;
  const question = given ?? composer.take();
  composer.clearProblem();
  setTurn({ id: null, stopping: false });
  let placed = null;
  let accepted = false;
  let fresh = false;
  const parentId = question.edited ? question.edited.parent_id ?? null : state.leaf;
  try {
    fresh = await ensureConversation(question.text);
    placed = place(question.text, parentId, []);
    const body = requestBody(question.text, parentId, question.attachments ?? []);
    const whole = await follow(placed.answer, {
      body,
      key: keyFor(body),
      onAccepted(data) {
        accepted = true;
        placed.asked.attachments = data.attachments ?? [];
        thread.redrawQuestion(placed.asked);
        nameBy(question.text);
        composer.accepted({ files: !given });
      },
    });
    if (whole) await settle(placed.asked, placed.answer);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (accepted) return fail(placed.answer, error);
    if (placed) takeBack(placed.asked, placed.answer, parentId);
    // Offline, nobody knows whether the question arrived: then the conversation and the key stay.
    if (fresh && error.status >= 400 && error.status < 500) await forgetEmpty();
    composer.giveBack(question);
    composer.showProblem(error, () => void send());
  } finally {
    if (!followed) setTurn(null);
  }
  return undefined;
}

/** After loading a conversation: pick up an answer that is still being written. */
export async function resumeRunning() {
  const answer = state.messages.get(state.leaf);
  if (!answer || !isRunning(answer) || !answer.turn_id) return;
  Object.assign(answer, { text: "", reasoning: "", phase: "accepted", first: null, begun: performance.now(), resumed: true });
  thread.draw();
  const { id } = state.conversation;
  try {
    if (await follow(answer, {})) await settle({ id: answer.parent_id }, answer);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (state.conversation?.id === id) fail(answer, error);
  }
}

async function stopAt(turn) {
  try {
    await post(`turns/${turn.id}/stop/`, {});
  } catch (error) {
    turn.stopping = false;
    emit("turn");
    if (error.status !== 404 && error.status !== 409) composer.showProblem(error);
  }
}

export function stop() {
  const { turn } = state;
  if (!turn || turn.stopping) return;
  turn.stopping = true;
  emit("turn");
  if (turn.id) void stopAt(turn);
}

/** Ask the question of an answer once more, as a new version beside the old one. */
export function again(answer) {
  const question = state.messages.get(answer.parent_id);
  if (!question) return;
  const earlier = state.messages.get(state.messages.get(question.parent_id)?.parent_id)?.attachments;
  void send({ text: question.text, edited: question, attachments: attach.filesOf(question, earlier).map((item) => item.document_id) });
}

export function resume() {
  void send({ text: t("Continue exactly where your last answer ended."), edited: null });
}

/** Leave the running turn to the server; it is picked up when the conversation is opened again. */
export function leave() {
  followed?.leave();
  followed = null;
  setTurn(null);
}

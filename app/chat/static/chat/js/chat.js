// The chat page: loads what it needs, connects the parts, keeps address and page in step.
import { all, get } from "../../common/js/api.js";
import { pageData } from "../../common/js/dom.js";
import { setRail } from "../../common/js/rail.js";
import { t } from "../../common/js/i18n.js";
import * as asking from "./asking.js";
import * as attach from "./attach.js";
import * as composer from "./composer.js";
import * as conversations from "./conversations.js";
import * as keys from "./keys.js";
import * as meter from "./meter.js";
import * as picker from "./picker.js";
import * as sources from "./sources.js";
import { addressOf } from "./shelf-row.js";
import { emit, modelOf, on, opened, state } from "./state.js";
import * as thread from "./thread.js";
import { newestLeaf } from "./tree.js";

const demonstration = document.getElementById("demonstration");

function headline() {
  const title = state.conversation?.title || t("New conversation");
  document.getElementById("bar-title").textContent = title;
  document.getElementById("chat-title").textContent = title;
  document.title = state.conversation ? `${title} · Tessera` : "Tessera";
}

/** Show a conversation (null: a new one), at one of its turns where it is named, without changing the address. */
async function show(id, turn = null) {
  if (await place(id, turn)) await asking.resumeRunning();
}

/** The same without its running answer; says whether it could be loaded. */
async function place(id, turn) {
  asking.leave();
  void asking.forgetAbandoned();
  sources.close();
  thread.clear();
  picker.reset();
  if (id) {
    try {
      await thread.load(id, turn);
    } catch (error) {
      if (!error.status && error.code !== "offline") throw error;
      thread.showFailure(error.status === 404 ? t("This conversation was deleted, or it belongs to someone who has not shared it with you.") : error.message,
        error.status === 404 ? null : () => void show(id, turn));
      return false;
    }
    picker.reset();
  } else thread.draw();
  composer.restoreDraft();
  emit("conversation");
  return true;
}

async function go(id, turn = null) {
  setRail(false);
  window.history.pushState({}, "", id ? addressOf(id, turn) : "/");
  const shown = show(id, turn);
  if (!turn) composer.focus();
  await shown;
}

function fromAddress() {
  return /^\/c\/([^/]+)\//.exec(window.location.pathname)?.[1] ?? null;
}

function turnFromAddress() {
  return /^#turn=([\w-]+)$/.exec(window.location.hash)?.[1] ?? null;
}

const actions = {
  openSource: (answer, n) => void sources.openSource(answer, n),
  again: asking.again,
  resume: asking.resume,
  edit: composer.beginEdit,
  suggest: (text) => composer.setText(text),
  showVersion(message) {
    state.leaf = newestLeaf(state.messages, message.id);
    thread.draw();
  },
};

function drawDemonstration() {
  demonstration.hidden = !modelOf(state.choice.model)?.is_demonstration;
}

async function begin() {
  const { conversation } = pageData("page");
  const listed = conversations.start((id, turn) => void go(id, turn));
  composer.start({ send: () => void asking.send(), stop: asking.stop });
  attach.start({ ensure: () => asking.ensureConversation() });
  thread.start(actions);
  picker.start();
  meter.start();
  keys.start({
    stop: asking.stop, closePanel: sources.close, newConversation: () => void go(null), moveInList: conversations.moveFocus,
    findConversation() {
      setRail(true);
      conversations.focusSearch();
    },
  });
  on("conversation", headline);
  on("renamed", (item) => {
    if (state.conversation?.id !== item.id) return;
    state.conversation.title = item.title;
    headline();
  });
  on("choice", () => {
    drawDemonstration();
    if (!state.conversation && !state.messages.size) thread.draw();
  });
  on("problem", (error) => composer.showProblem(error));
  document.getElementById("new-conversation").addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    void go(null);
  });
  window.addEventListener("popstate", () => void show(fromAddress(), turnFromAddress()));
  try {
    [state.me, state.models, state.collections, state.assistants] = await Promise.all([get("me/"), all("models/"), all("collections/"), all("assistants/")]);
  } catch (error) {
    composer.showProblem(error, () => window.location.reload());
  }
  state.models = state.models.filter((model) => model.purpose === undefined || model.purpose === "chat");
  const turn = turnFromAddress();
  const placed = await place(conversation, turn);
  opened();
  if (!turn) composer.focus();
  if (placed) await asking.resumeRunning();
  await listed;
}

void begin();

// What the chat page knows, in one place, and a way to hear that it changed.
import { t } from "../../common/js/i18n.js";
const bus = new EventTarget();

export const state = {
  me: null,
  models: [],
  collections: [],
  assistants: [],
  conversation: null,
  /** Every loaded message of the open conversation by id, and the leaf of the branch on screen. */
  messages: new Map(),
  leaf: null,
  earlier: null,
  /** The running turn of this conversation ({id, stop}), or null. */
  turn: null,
  choice: { model: null, assistant: null, collections: [], team: null },
};

/** Resolves once the models are known and the first conversation is shown; `opened` says so. */
let open;
export const ready = new Promise((resolve) => {
  open = resolve;
});
export const opened = () => open();

export function on(name, listener) {
  bus.addEventListener(name, (event) => listener(event.detail));
}

export function emit(name, detail = null) {
  bus.dispatchEvent(new CustomEvent(name, { detail }));
}

export function modelOf(id) {
  return state.models.find((model) => model.id === id) ?? null;
}

export function assistantOf(id) {
  return state.assistants.find((item) => item.id === id) ?? null;
}

/** The name shown for a model; ids of models that are gone still stand for themselves. */
export function modelName(id) {
  return modelOf(id)?.name ?? id ?? t("unknown model");
}

export function collectionName(id) {
  return state.collections.find((item) => item.id === id)?.name ?? t("a collection you can no longer open");
}

export function recall(key, fallback = null) {
  try {
    return JSON.parse(window.localStorage.getItem(key)) ?? fallback;
  } catch {
    return fallback;
  }
}

/** Keep a value in this browser; null forgets it. Storage that is full or forbidden loses only convenience. */
export function remember(key, value) {
  try {
    if (value === null) window.localStorage.removeItem(key);
    else window.localStorage.setItem(key, JSON.stringify(value));
  } catch {
    emit("storage-refused");
  }
}

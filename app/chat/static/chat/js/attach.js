// Files for the question being written: by button, drop or paste; each a chip that says what happens to it.
import { ApiError, get, remove } from "../../common/js/api.js";
import { h, icon, iconButton } from "../../common/js/dom.js";
import { bytes, count } from "../../common/js/format.js";
import { upload } from "../../common/js/upload.js";
import { t } from "../../common/js/i18n.js";
import { told } from "../../common/js/sentences.js";
import { emit, on, ready, recall, remember, state } from "./state.js";

const POLL_MS = 900;
const card = document.querySelector(".composer-card");
const list = document.getElementById("attachments");
const input = document.getElementById("attach-files");
let chips = [];
let handlers = {};

const key = () => `files:${state.conversation?.id ?? "new"}`;
const working = (chip) => chip.id === null || !["ready", "failed", "cancelled"].includes(chip.status);

/** Ids of the files that go along with the next question. */
export function ids() {
  return chips.filter((chip) => chip.id && chip.status === "ready").map((chip) => chip.id);
}

/** All that are named, also those still being read: the pre-count says of each what will become of it. */
export function named() {
  return chips.filter((chip) => chip.id && chip.status !== "failed").map((chip) => chip.id);
}

/** Whether there is a file, or one on its way; those that came to nothing do not count. */
export function any() {
  return chips.some((chip) => !chip.failed);
}

/** Why the question cannot go yet, or "". */
export function blocked() {
  const waiting = chips.find((chip) => !chip.failed && working(chip));
  if (waiting) return t("“{name}” is still being read. It takes a moment; then send.", { name: waiting.name });
  const broken = chips.find((chip) => chip.failed);
  return broken ? t("“{name}” cannot go along. Remove it, then send.", { name: broken.name }) : "";
}

const WAYS = { whole: t("goes whole"), searched: t("will be searched"), picture: t("goes as a picture") };
const STAGES = { queued: t("in line to be read"), parsing: t("being read"), chunking: t("being read"), embedding: t("being indexed") };

function words(chip) {
  if (chip.failed) return chip.error;
  if (chip.id === null) return chip.share < 1 ? `${Math.round(chip.share * 100)} %` : t("being stored");
  if (chip.status !== "ready") return STAGES[chip.status] ?? t("being read");
  if (!chip.way) return "ready";
  return chip.tokens ? `${WAYS[chip.way]}, ${count(chip.tokens)} tokens` : WAYS[chip.way];
}

function draw() {
  list.hidden = !chips.length;
  list.replaceChildren(...chips.map((chip) => h("li", { class: chip.failed ? "file failed" : "file", title: `${chip.name}${chip.size ? `, ${bytes(chip.size)}` : ""}\n${words(chip)}` },
    icon(chip.failed ? "alert" : "clip", true),
    h("span", { class: "grow" }, h("span", { class: "name", dir: "auto" }, chip.name), h("span", { class: "fate num", role: "status" }, words(chip)),
      working(chip) && !chip.failed ? h("progress", { max: "1", value: String(chip.id === null ? chip.share : chip.progress ?? 0), "aria-label": t("Reading {chip}", { chip: chip.name }) }) : null),
    chip.failed && chip.file ? iconButton("again", t("Try {chip} again", { chip: chip.name }), () => void send(chip)) : null,
    iconButton("x", t("Remove {chip}", { chip: chip.name }), () => void drop(chip)))));
}

function changed() {
  remember(key(), chips.some((chip) => chip.id) ? chips.filter((chip) => chip.id).map((chip) => chip.id) : null);
  draw();
  emit("attachments");
}

function known(chip, document) {
  Object.assign(chip, { id: document.id, name: document.name, size: document.size, status: document.status, progress: document.progress });
  chip.failed = ["failed", "cancelled"].includes(document.status);
  chip.error = told(document.error?.message) ?? t("It could not be read.");
}

async function drop(chip) {
  chips = chips.filter((other) => other !== chip);
  changed();
  if (!chip.id || chip.used) return;
  try {
    await remove(`documents/${chip.id}/`);
  } catch (error) {
    // It is out of the question in any case; what stays behind goes with the conversation.
    if (!(error instanceof ApiError)) throw error;
  }
}

async function follow(chip) {
  while (chips.includes(chip) && !chip.failed && chip.status !== "ready") {
    await new Promise((resolve) => window.setTimeout(resolve, POLL_MS));
    try {
      known(chip, await get(`documents/${chip.id}/`));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) Object.assign(chip, { failed: true, error: t("It was removed.") });
    }
    draw();
  }
  if (chips.includes(chip)) changed();
}

async function send(chip) {
  Object.assign(chip, { failed: false, share: 0, id: null });
  draw();
  try {
    await handlers.ensure();
    const { body } = await upload(`conversations/${state.conversation.id}/attachments/`, chip.file, (share) => {
      chip.share = share;
      draw();
    });
    known(chip, body);
    if (chips.some((other) => other !== chip && other.id === chip.id)) chips = chips.filter((other) => other !== chip);
    changed();
    await follow(chip);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    Object.assign(chip, { failed: true, error: error.message });
    changed();
  }
}

async function add(files) {
  // What is restored for the first conversation takes the place of all that is listed before.
  await ready;
  // One after the other as far as the conversation that they are for has to be made first.
  for (const file of files) {
    const chip = { file, name: file.name || t("pasted picture.png"), size: file.size, id: null, share: 0, status: "", failed: false, error: "" };
    chips.push(chip);
    const sent = send(chip);
    if (!state.conversation) await sent;
  }
  draw();
  emit("attachments");
}

/** The question was taken: its files are its own now. */
export function accepted() {
  chips = [];
  changed();
}

/** Files of a question that is edited go along with its new version. */
export function use(items) {
  chips = items.map((item) => ({ id: item.document_id, name: item.name, size: 0, status: "ready", way: item.way, tokens: item.tokens, used: true, failed: false, error: "" }));
  draw();
  emit("attachments");
}

/** What was attached before and not sent. */
export async function restore() {
  chips = [];
  draw();
  const { conversation } = state;
  const waiting = conversation ? recall(key(), []) : [];
  for (const id of waiting) {
    try {
      const chip = {};
      known(chip, await get(`documents/${id}/`));
      // Somebody may have gone on to another conversation meanwhile.
      if (state.conversation?.id !== conversation.id) return;
      chips.push(chip);
      void follow(chip);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }
  if (state.conversation?.id === conversation?.id) changed();
}

/** The pre-count says of each file what becomes of it with the model that is chosen. */
function placed(estimate) {
  for (const item of estimate.attachments ?? []) {
    const chip = chips.find((other) => other.id === item.document_id);
    if (chip) Object.assign(chip, { way: item.way, tokens: item.tokens });
  }
  draw();
}

export function start(given) {
  handlers = given;
  document.getElementById("attach").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    void add([...input.files]);
    input.value = "";
  });
  document.getElementById("composer-text").addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    void add(files);
  });
  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (by) => card.classList.toggle("over", (depth = by === null ? 0 : Math.max(0, depth + by)) > 0);
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("dragenter", (event) => hasFiles(event) && over(1));
  document.addEventListener("dragleave", (event) => hasFiles(event) && over(-1));
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    over(null);
    void add([...event.dataTransfer.files]);
  });
  on("estimate", placed);
}

/** The files that a question brought along, as they stand above it in the thread. */
export function filesOf(message, before) {
  const earlier = new Set((before ?? []).map((item) => item.document_id));
  return (message.attachments ?? []).filter((item) => item.way && !earlier.has(item.document_id));
}

export function fileLinks(items) {
  if (!items.length) return null;
  return h("ul", { class: "files", "aria-label": t("Attached files") }, items.map((item) => h("li", {},
    h("a", { class: "file", href: `/documents/${item.document_id}/`, title: WAYS[item.way] ?? "" }, icon("clip", true),
      h("span", { class: "name", dir: "auto" }, item.name), h("span", { class: "fate" }, { whole: "whole", searched: "searched", picture: "picture" }[item.way])))));
}

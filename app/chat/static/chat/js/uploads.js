// Uploading by button or by dropping files on the page: two at a time, each with its own progress and its own failure.
import { post } from "../../common/js/api.js";
import { h, icon, pageData } from "../../common/js/dom.js";
import { upload } from "../../common/js/upload.js";
import { bytes } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { told } from "../../common/js/sentences.js";

const AT_ONCE = 2;
const waiting = [];
let running = 0;

function pump() {
  while (running < AT_ONCE && waiting.length) {
    running += 1;
    void waiting.shift()().finally(() => {
      running -= 1;
      pump();
    });
  }
}

function uploadRow(file) {
  const bar = h("progress", { max: "1", value: "0", "aria-label": t("Uploading {file}", { file: file.name }) });
  const words = h("span", { class: "small num" }, t("Waiting to upload"));
  const below = h("div", { class: "stage" }, words, bar);
  const buttons = h("div", { class: "row-actions" });
  const node = h("li", { class: "document uploading" }, icon("upload"),
    h("div", { class: "grow" }, h("p", { class: "document-name", dir: "auto" }, file.name), h("p", { class: "muted small num" }, bytes(file.size)), below), buttons);
  return {
    node,
    progress(share) {
      bar.value = share;
      words.textContent = share < 1 ? t("Uploading {share} %", { share: Math.round(share * 100) }) : t("Uploaded; being stored");
    },
    fail(error, again) {
      const retry = h("button", { type: "button", class: "button compact", onclick: again }, t("Try again"));
      const away = h("button", { type: "button", class: "button compact", onclick: () => node.remove() }, t("Remove"));
      below.replaceChildren(h("div", { class: "failure" }, icon("alert", true), h("div", { class: "grow" }, h("p", { class: "small" }, error.message), h("div", { class: "actions" }, retry, away))));
    },
    begin() {
      below.replaceChildren(words, bar);
    },
  };
}

function send(file, collectionId, { started, done }) {
  const row = uploadRow(file);
  started(row.node);
  const work = async () => {
    row.begin();
    try {
      const { status, body } = await upload(`collections/${collectionId}/documents/`, file, row.progress);
      row.node.remove();
      done(body, status !== 200);
    } catch (error) {
      row.fail(error, () => {
        waiting.push(work);
        pump();
      });
    }
  };
  waiting.push(work);
  pump();
}

/** A field for the address of a page or file; the worker fetches it, so a wrong one fails in its own row. */
function addressForm(collectionId, { done }) {
  const box = h("input", { type: "url", id: "address", class: "input", placeholder: "https://", maxlength: "2000", required: true, "aria-label": t("Address of a page or file") });
  const button = h("button", { type: "submit", class: "button compact" }, t("Add"));
  const problem = h("p", { class: "small bad", role: "alert" });
  return h("form", { class: "address", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    problem.textContent = "";
    try {
      const known = await post(`collections/${collectionId}/documents/`, { url: box.value.trim() });
      done(known, !known.pages && known.status === "queued");
      box.value = "";
    } catch (error) {
      problem.textContent = error.message;
    }
    button.disabled = false;
  } }, box, button, problem);
}

/** The place to drop files. `hooks`: {started(node), done(document, isNew)}. */
export function uploadZone(collectionId, hooks) {
  const take = (files) => [...files].reverse().forEach((file) => send(file, collectionId, hooks));
  const { accept, formats } = pageData("page");
  const input = h("input", { type: "file", multiple: true, accept, id: "files", class: "visually-hidden", onchange: () => {
    take(input.files);
    input.value = "";
  } });
  const zone = h("div", { class: "drop" }, icon("upload"),
    h("p", { class: "grow" }, h("label", { for: "files", class: "button compact" }, t("Choose files")), input, h("span", { class: "muted small by-mouse" }, t(" or drop them here"))),
    h("details", { name: "more-ways" }, h("summary", { class: "small" }, t("From the web")), addressForm(collectionId, hooks)),
    h("details", { name: "more-ways" }, h("summary", { class: "small" }, t("What can be read")), h("p", { class: "muted small" }, t("{formats} The same file again is kept once.", { formats: told(formats) }))));
  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  document.ondragover = (event) => hasFiles(event) && event.preventDefault();
  document.ondragenter = (event) => {
    if (hasFiles(event)) zone.classList.toggle("over", (depth += 1) > 0);
  };
  document.ondragleave = () => zone.classList.toggle("over", (depth = Math.max(0, depth - 1)) > 0);
  document.ondrop = (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    zone.classList.remove("over");
    take(event.dataTransfer.files);
  };
  return zone;
}

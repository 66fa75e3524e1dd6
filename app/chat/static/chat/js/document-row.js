// One document in the list: where it stands, why it failed, what can be done.
import { post } from "../../common/js/api.js";
import { h, icon, iconButton } from "../../common/js/dom.js";
import { ago, bytes, count, exactTime } from "../../common/js/format.js";
import { t, tn } from "../../common/js/i18n.js";
import { openMenu } from "../../common/js/menu.js";
import { told } from "../../common/js/sentences.js";
import { upload } from "../../common/js/upload.js";
import { removeWithReceipt } from "./receipts.js";

/** Words and share of the whole way for each stage; embedding is the long one. */
const STAGES = {
  queued: [t("Waiting for the worker"), () => 0.02],
  parsing: [t("Reading the file"), (part) => 0.05 + 0.2 * part],
  chunking: [t("Cutting into passages"), (part) => 0.25 + 0.1 * part],
  embedding: [t("Making it searchable"), (part) => 0.35 + 0.65 * part],
};

/** Place in line, or what the stage still takes at its pace; nothing while neither is known. */
function still(item) {
  if (item.queue_position) return t(" · {n}. in line", { n: count(item.queue_position) });
  const left = item.eta_seconds;
  if (!left) return "";
  return left < 90 ? t(" · about {left} s left", { left }) : t(" · about {left} min left", { left: count(Math.round(left / 60)) });
}

function stage(item) {
  const fetching = item.status === "parsing" && !item.sha256;
  const [words, share] = fetching ? [t("Fetching it from the web"), () => 0.04] : STAGES[item.status] ?? [item.status, () => 0];
  const part = item.progress ?? 0;
  const percent = item.status === "embedding" && item.progress !== null && item.progress !== undefined ? ` ${Math.round(part * 100)} %` : "";
  return h("div", { class: "stage" }, h("span", { class: "small num" }, words + percent + still(item)),
    h("progress", { max: "1", value: String(share(part)), "aria-label": `${item.name}: ${words}${percent}` }));
}

function words(value) {
  return told(typeof value === "string" ? value : value.message ?? JSON.stringify(value));
}

function facts(item) {
  const parts = [
    item.pages ? tn("{pages} page", "{pages} pages", item.pages, { pages: count(item.pages) }) : null,
    // What has not been fetched yet has no size that is known.
    item.sha256 ? bytes(item.size) : null,
    item.version > 1 ? t("version {version}", { version: item.version }) : null,
  ].filter(Boolean);
  return h("p", { class: "muted small num" }, parts.join(" · "), parts.length ? " · " : "",
    h("time", { datetime: item.created_at, title: exactTime(item.created_at) }, t("added {created_at}", { created_at: ago(item.created_at) })));
}

/** For a file that is encrypted: the password, asked where its lack is said. */
function unlock(item, send) {
  const box = h("input", { type: "password", class: "input", id: `password-${item.id}`, autocomplete: "off", required: true, maxlength: "500" });
  return h("form", { class: "unlock", onsubmit: (event) => {
    event.preventDefault();
    void send({ password: box.value });
  } }, h("label", { class: "small", for: box.id }, t("Password of the file")), box,
    h("button", { type: "submit", class: "button compact" }, t("Read it")),
    h("p", { class: "muted small" }, t("Kept encrypted until the file was read, then forgotten.")));
}

function state(item, retry) {
  if (item.status === "failed") {
    return h("div", { class: "failure" }, icon("alert", true), h("div", { class: "grow" },
      h("p", { class: "small" }, words(item.error ?? t("It could not be read, and no reason was kept."))), retry));
  }
  if (item.status === "cancelled") return h("div", { class: "failure calm" }, h("p", { class: "small grow" }, t("Reading was stopped before its end.")), retry);
  if (item.status !== "ready") return stage(item);
  const warnings = item.warnings ?? [];
  return warnings.length ? h("ul", { class: "warnings small" }, warnings.map((warning) => h("li", {}, words(warning)))) : null;
}

/** Before a document goes: what each of the two ways leaves. `go(erase)` does it. */
function question(item, { manageable, go, keep }) {
  const button = (words, act, danger = true) => h("button", { type: "button", class: danger ? "button compact danger" : "button compact", onclick: act }, words);
  const no = button(t("Keep"), keep, false);
  const node = h("div", { class: "failure calm" }, h("div", { class: "grow" },
    h("p", { class: "small" }, t("Delete “{name}”? It is found no more; answers that were given keep the passages they rest on.", { name: item.name }),
      manageable ? ` ${t("Erasing it everywhere blanks those too, for good.")}` : ""),
    h("div", { class: "actions" }, button(t("Delete"), () => go(false)), manageable ? button(t("Erase everywhere"), () => go(true)) : null, no)));
  node.addEventListener("keydown", (event) => event.key === "Escape" && keep());
  return { node, focus: () => no.focus() };
}

/** The row. `actions`: {changed(item), removed(item, words, receipt), failed(error), writable, manageable}. */
export function documentRow(item, actions) {
  const act = async (work) => {
    try {
      await work();
    } catch (error) {
      actions.failed(error);
    }
  };
  const send = (verb, body = {}) => act(async () => actions.changed(await post(`documents/${item.id}/${verb}/`, body)));
  const again = (body) => send("retry", body);
  const locked = item.status === "failed" && item.error?.code === "encrypted";
  const offer = locked ? unlock(item, again) : h("button", { type: "button", class: "button compact", onclick: () => void again() }, t("Try again"));
  // What is refused for its address is refused the next time too.
  const final = item.error?.code === "address_refused";
  const retry = actions.writable && !final ? offer : null;
  const node = h("li", { class: "document", data: { id: item.id, status: item.status } });
  const asked = h("div", {});
  const go = (erase) => act(async () => {
    const receipt = erase ? await post(`documents/${item.id}/erase/`, {}) : await removeWithReceipt(`documents/${item.id}/`);
    actions.removed(item, erase ? t("“{name}” is erased everywhere.", { name: item.name }) : t("“{name}” is deleted.", { name: item.name }), receipt);
  });
  const ask = () => {
    const { node: words, focus } = question(item, { manageable: actions.manageable, go, keep: () => {
      asked.replaceChildren();
      more.focus();
    } });
    asked.replaceChildren(words);
    focus();
  };
  const version = h("input", { type: "file", hidden: true, onchange: () => act(async () => actions.changed((await upload(`documents/${item.id}/file/`, version.files[0], undefined, "PUT")).body)) });
  const working = !["ready", "failed", "cancelled"].includes(item.status);
  const more = iconButton("more", t("More for {title}", { title: item.name }), () => openMenu(more, item.name, [
    item.status === "ready" && { icon: "again", words: t("Read again"), act: () => void send("reread") },
    !working && { icon: "upload", words: t("Upload a new version…"), act: () => version.click() },
    { icon: "trash", words: t("Delete…"), act: ask, danger: true },
  ]), { "aria-haspopup": "menu", "aria-expanded": "false" });
  const stop = working ? iconButton("x", t("Stop reading {item}", { item: item.name }), () => void send("cancel")) : null;
  const title = item.status === "ready" || item.serving_version > 0
    ? h("a", { href: `/documents/${item.id}/`, title: t("What the machine read") }, item.name)
    : h("span", {}, item.name);
  node.append(icon("sources"), h("div", { class: "grow" }, h("p", { class: "document-name", dir: "auto" }, title), facts(item), state(item, retry), asked),
    h("div", { class: "row-actions" }, actions.writable ? [stop, more, version] : null));
  return node;
}

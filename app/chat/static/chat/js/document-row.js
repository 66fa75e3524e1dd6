// One document in the list: where it stands, why it failed, what can be done.
import { post, remove } from "../../common/js/api.js";
import { h, icon, iconButton } from "../../common/js/dom.js";
import { ago, bytes, count, exactTime } from "../../common/js/format.js";
import { t, tn } from "../../common/js/i18n.js";
import { told } from "../../common/js/sentences.js";

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

/** The row. `actions`: {changed(item), removed(item, words), failed(error), writable, manageable}. */
export function documentRow(item, actions) {
  const act = async (work) => {
    try {
      await work();
    } catch (error) {
      actions.failed(error);
    }
  };
  const again = (body) => act(async () => actions.changed(await post(`documents/${item.id}/retry/`, body)));
  const locked = item.status === "failed" && item.error?.code === "encrypted";
  const offer = locked ? unlock(item, again) : h("button", { type: "button", class: "button compact", onclick: () => void again({}) }, t("Try again"));
  // What is refused for its address is refused the next time too.
  const final = item.error?.code === "address_refused";
  const retry = actions.writable && !final ? offer : null;
  const buttons = h("div", { class: "row-actions" });
  const node = h("li", { class: "document", data: { id: item.id, status: item.status } });
  const take = () => act(async () => {
    await remove(`documents/${item.id}/`);
    actions.removed(item);
  });
  const erase = () => act(async () => {
    const receipt = await post(`documents/${item.id}/erase/`, {});
    actions.removed(item, t("{item} is erased everywhere. Receipt {number}.", { item: item.name, number: receipt.number }));
  });
  const ask = () => {
    const no = h("button", { type: "button", class: "button compact", onclick: () => actions.changed(item) }, t("Keep"));
    const everywhere = h("button", { type: "button", class: "button compact danger", title: t("Also the passages that answers were given"), onclick: () => void erase() }, t("Erase everywhere"));
    buttons.replaceChildren(h("button", { type: "button", class: "button compact danger", onclick: () => void take() }, t("Delete")), ...(actions.manageable ? [everywhere] : []), no);
    no.focus();
  };
  const working = !["ready", "failed", "cancelled"].includes(item.status);
  if (actions.writable && working) buttons.append(iconButton("x", t("Stop reading {item}", { item: item.name }), () => void act(async () => actions.changed(await post(`documents/${item.id}/cancel/`, {})))));
  if (actions.writable) buttons.append(iconButton("trash", t("Delete {item}", { item: item.name }), ask));
  const title = item.status === "ready" || item.serving_version > 0
    ? h("a", { href: `/documents/${item.id}/`, title: t("What the machine read") }, item.name)
    : h("span", {}, item.name);
  node.append(icon("sources"), h("div", { class: "grow" }, h("p", { class: "document-name", dir: "auto" }, title), facts(item), state(item, retry)), buttons);
  return node;
}

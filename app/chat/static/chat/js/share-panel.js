// Sharing one conversation: make a link, copy it, take it back. Opens beside what it belongs to, never over the page.
import { get, post, remove } from "../../common/js/api.js";
import { h, skeleton } from "../../common/js/dom.js";
import { day, exactTime } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { choice, field, openPanel } from "../../common/js/panel.js";
import { copyButton } from "./own-list.js";

const DAY_MS = 86_400_000;
const TERMS = [[7, () => t("In 7 days")], [30, () => t("In 30 days")], [365, () => t("In a year")], [0, () => t("Never")]];

/** One link with what it allows; `removed` is called when it was taken back. */
export function linkRow(share, removed, { titled = false } = {}) {
  const ended = share.expires_at && new Date(share.expires_at) <= new Date();
  const words = [
    share.audience === "team" ? t("Only {team}", { team: share.team.name }) : t("Everyone who is signed in"),
    !share.expires_at ? t("does not end") : ended ? t("ended on {date}", { date: day(share.expires_at) }) : t("ends on {date}", { date: day(share.expires_at) }),
  ].join(", ");
  const problem = h("p", { class: "small warn", role: "alert", hidden: true });
  const revoke = h("button", { type: "button", class: "button compact danger", onclick: async () => {
    revoke.disabled = true;
    try {
      await remove(`shares/${share.id}/`);
    } catch (error) {
      if (error.status !== 404) {
        problem.textContent = error.message;
        problem.hidden = false;
        revoke.disabled = false;
        return;
      }
    }
    removed(share);
  } }, t("Take back"));
  return h("li", { class: "share", data: { id: share.id } },
    titled ? h("p", {}, h("a", { href: `/c/${share.conversation_id}/`, dir: "auto" }, share.title || t("Untitled conversation"))) : null,
    h("input", { class: "input share-url", readonly: true, value: share.url, "aria-label": t("Link"), onfocus: (event) => event.target.select() }),
    h("p", { class: "muted small" }, words, " · ", h("time", { datetime: share.created_at, title: exactTime(share.created_at) }, t("made on {date}", { date: day(share.created_at) }))),
    problem,
    h("div", { class: "actions" }, copyButton(() => share.url, t("Copy link")), ended ? null : h("a", { class: "button compact", href: share.url, target: "_blank", rel: "noopener" }, t("See it")), revoke));
}

function form(item, leaf, made) {
  const problem = h("p", { class: "callout bad small", role: "alert", hidden: true });
  const audience = choice("share-audience", [["everyone", t("Everyone who is signed in")], ["team", t("Only {team}", { team: item.team.name })]], "everyone");
  const term = choice("share-term", TERMS.map(([days, words]) => [String(days), words()]), "30");
  const button = h("button", { type: "submit", class: "button primary" }, t("Make a link"));
  return h("form", { class: "panel-form", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    problem.hidden = true;
    const days = Number(term.value);
    try {
      made(await post(`conversations/${item.id}/shares/`, {
        audience: audience.value,
        expires_at: days ? new Date(Date.now() + days * DAY_MS).toISOString() : null,
        ...(leaf ? { turn: leaf } : {}),
      }));
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
    button.disabled = false;
  } }, field(t("Who may open it"), audience), field(t("It ends"), term), problem, button);
}

/** Open the panel at `anchor`. `leaf`: the turn on screen that is to be the last, or null for the newest. */
export async function openSharing(item, leaf, anchor) {
  const links = h("ol", { class: "shares" }, skeleton(2));
  const panel = openPanel(t("Share this conversation"), anchor, [
    h("p", { class: "small muted" }, t("Readers see the questions and answers up to now, not what you ask later. A passage is shown only to readers who may read its document at that moment; the words of the answers are shown to all of them.")),
    form(item, leaf, (share) => {
      links.querySelector(".muted.none")?.remove();
      links.prepend(linkRow(share, taken));
      links.querySelector("input")?.focus();
    }), links, h("p", { class: "small" }, h("a", { href: "/shares/" }, t("All your links")))]);
  const taken = (share) => {
    links.querySelector(`[data-id="${CSS.escape(share.id)}"]`)?.remove();
    panel.querySelector("button.primary").focus();
  };
  try {
    const { items } = await get(`conversations/${item.id}/shares/`);
    links.replaceChildren(...items.map((share) => linkRow(share, taken)));
    if (!items.length) links.append(h("li", { class: "muted small none" }, t("No link yet.")));
  } catch (error) {
    links.replaceChildren(h("li", { class: "callout bad small", role: "alert" }, error.message));
  }
}

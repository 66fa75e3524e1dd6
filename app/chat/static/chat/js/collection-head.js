// The head of the open collection: what it is, and what can be done with it as a whole.
import { post } from "../../common/js/api.js";
import { h, icon, iconButton } from "../../common/js/dom.js";
import { count } from "../../common/js/format.js";
import { t } from "../../common/js/i18n.js";
import { openMenu } from "../../common/js/menu.js";
import { LEVELS, openSettings } from "./collection-settings.js";
import { openGrants } from "./grants.js";
import { removeWithReceipt } from "./receipts.js";

/** Before a collection goes, with all that is in it. */
function question(collection, { go, keep }) {
  const button = (words, act, danger = true) => h("button", { type: "button", class: danger ? "button compact danger" : "button compact", onclick: act }, words);
  const no = button(t("Keep"), keep, false);
  const node = h("div", { class: "callout bad" }, icon("alert"), h("div", { class: "grow" },
    h("p", {}, t("Delete the collection and its {size} documents for good?", { size: count(collection.document_count ?? 0) }), " ",
      t("Answers that were given keep the passages they rest on. Erasing it everywhere blanks those too, for good.")),
    h("div", { class: "actions" }, button(t("Delete it"), () => go(false)), button(t("Erase everywhere"), () => go(true)), no)));
  node.addEventListener("keydown", (event) => event.key === "Escape" && keep());
  return { node, focus: () => no.focus() };
}

/** `act`: {teams, may(verb), documents(), changed(collection), removed(words, receipt), failed(error)}. */
export function collectionHead(collection, act) {
  const level = LEVELS.find(([value]) => value === collection.level)?.[1];
  const words = [collection.team ? t("Owned and paid by {team}", { team: collection.team.name }) : null, level].filter(Boolean);
  const below = h("div", { class: "head-below" });
  const go = async (erase) => {
    try {
      const path = `collections/${collection.id}/`;
      const receipt = erase ? await post(`${path}erase/`, {}) : await removeWithReceipt(path);
      act.removed(erase ? t("“{name}” is erased everywhere.", { name: collection.name }) : t("“{name}” is deleted.", { name: collection.name }), receipt);
    } catch (error) {
      below.replaceChildren();
      act.failed(error);
    }
  };
  const ask = () => {
    const { node, focus } = question(collection, { go, keep: () => {
      below.replaceChildren();
      more.focus();
    } });
    below.replaceChildren(node);
    focus();
  };
  const share = h("button", { type: "button", class: "button compact", onclick: () => void openGrants(collection, act.teams, share) }, icon("share", true), t("Share"));
  const more = iconButton("more", t("More for {title}", { title: collection.name }), () => openMenu(more, collection.name, [
    { icon: "edit", words: t("Settings…"), act: () => openSettings(collection, act.documents(), more, act.changed) },
    { icon: "trash", words: t("Delete…"), act: ask, danger: true },
  ]), { "aria-haspopup": "menu", "aria-expanded": "false" });
  return h("header", { class: "collection-head" },
    h("div", {}, h("h2", { dir: "auto" }, collection.name), h("p", { class: "muted small" }, words.join(" · ")),
      collection.description ? h("p", { class: "small about", dir: "auto" }, collection.description) : null),
    act.may("manage") ? h("div", { class: "head-actions" }, share, more) : null, below);
}

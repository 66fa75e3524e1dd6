// What can be done with a conversation, for the menu of its row and the one beside its title.
import { BASE } from "../../common/js/api.js";
import { h, icon } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";
import { openMenu } from "../../common/js/menu.js";
import { openSharing } from "./share-panel.js";
import { on, state } from "./state.js";

/** The turn whose answer is the last on screen; null when another conversation is open or nothing was asked. */
function leafOf(item) {
  if (state.conversation?.id !== item.id) return null;
  return state.messages.get(state.leaf)?.turn_id ?? null;
}

function file(item, format, turn = null) {
  return `${BASE}conversations/${item.id}/export/?${new URLSearchParams({ format, ...(turn ? { turn } : {}) })}`;
}

/** `act`: {rename, pin, archive, ask}; the title's own menu leaves out what is done in the list. */
export function entriesOf(item, act, anchor) {
  const leaf = leafOf(item);
  return [
    act.rename && { icon: "edit", words: t("Rename"), act: act.rename },
    act.pin && !item.archived && { icon: "pin", words: item.pinned ? t("Unpin") : t("Pin"), act: act.pin },
    act.archive && { icon: "archive", words: item.archived ? t("Take out of the archive") : t("Archive"), act: act.archive },
    { icon: "share", words: t("Share…"), act: () => void openSharing(item, leaf, anchor) },
    { icon: "download", words: t("Export as Markdown"), href: file(item, "markdown"), download: "" },
    leaf && { icon: "download", words: t("Export this branch"), href: file(item, "markdown", leaf), download: "" },
    { icon: "download", words: t("Export as JSON"), href: file(item, "json"), download: "" },
    act.ask && { icon: "trash", words: t("Delete"), act: act.ask, danger: true },
  ];
}

/** The button beside the title of the open conversation. */
export function startTools() {
  const title = document.getElementById("chat-title");
  const button = h("button", { type: "button", class: "icon-button compact chat-more", "aria-haspopup": "menu", "aria-expanded": "false",
    "aria-label": t("Share or export this conversation"), title: t("Share or export this conversation"), hidden: true,
    onclick: () => openMenu(button, t("This conversation"), entriesOf(state.conversation, {}, button)) }, icon("more", true));
  title.after(button);
  on("conversation", () => {
    button.hidden = !state.conversation;
  });
  return button;
}

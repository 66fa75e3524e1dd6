// Keys that work anywhere on the page, and the card that lists them.
import { state } from "./state.js";

const card = document.getElementById("keys");

function typing(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]");
}

function escape({ stop, closePanel }) {
  if (card.open) card.close();
  else if (state.turn) stop();
  else closePanel();
}

export function start(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey) return;
    if (event.metaKey || event.ctrlKey) {
      if (event.key.toLowerCase() !== "k" || event.shiftKey) return;
      event.preventDefault();
      actions.findConversation();
      return;
    }
    if (event.key === "Escape") escape(actions);
    else if (typing(event.target)) return;
    else if (event.key === "/") {
      event.preventDefault();
      document.getElementById("composer-text").focus();
    } else if (event.key === "?") card.showModal();
    else if (event.key === "n") actions.newConversation();
    else if (event.key === "j") actions.moveInList(1);
    else if (event.key === "k") actions.moveInList(-1);
  });
  card.addEventListener("click", (event) => {
    if (event.target === card || event.target.closest("button")) card.close();
  });
}

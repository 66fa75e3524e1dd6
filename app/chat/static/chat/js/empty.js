// What a new conversation shows: what this is for, and one way to begin.
import { h } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";
import { assistantOf, state } from "./state.js";

function suggestion(actions) {
  const handbook = state.collections.find((item) => /handbook|tessera/i.test(item.name));
  if (!handbook || !state.choice.collections.includes(handbook.id)) return null;
  const words = "What happens when a budget is used up?";
  return h("p", {}, h("button", { type: "button", class: "suggestion", onclick: () => actions.suggest(words) }, h("span", { class: "muted" }, t("Try the {handbook}: ", { handbook: handbook.name })), words));
}

export function emptyState(actions) {
  const some = state.collections.length > 0;
  const assistant = assistantOf(state.choice.assistant);
  if (assistant) {
    return h("div", { class: "empty" }, h("h1", { dir: "auto" }, assistant.name),
      h("p", { dir: "auto" }, assistant.description || t("This assistant brings its own instructions, model and documents.")),
      h("p", { class: "small" }, t("Answered by {model}. ", { model: assistant.model }), h("a", { href: "/assistants/" }, t("See what it is told"))));
  }
  return h("div", { class: "empty" },
    h("h1", {}, t("Ask your documents")),
    h("p", {}, some
      ? t("Answers draw on the collections chosen below, and each source opens at the very passage that was used. You see what a question costs before you send it.")
      : t("There are no documents yet. Add some and ask about them, or ask the model directly: you see what a question costs before you send it.")),
    suggestion(actions),
    some ? null : h("p", {}, h("a", { class: "button", href: "/documents/" }, t("Add documents"))));
}

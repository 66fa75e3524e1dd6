// The names of limits, which the server has in English for every program, in the language of the page.
import { phraseTold } from "./sentences.js";

for (const node of document.querySelectorAll(".limit-list h3")) {
  const words = phraseTold(node.textContent.charAt(0).toLowerCase() + node.textContent.slice(1));
  node.textContent = words.charAt(0).toUpperCase() + words.slice(1);
}

// What every signed-in page has: the drawer on a phone, the theme switch, the word about the connection.
import { announce, watchConnection } from "./connection.js";

const root = document.documentElement;

function setTheme(next) {
  root.dataset.theme = next;
  try {
    window.localStorage.setItem("theme", next);
  } catch {
    // Storage may be forbidden; the choice then lasts for this page.
  }
}

function railOpen(open) {
  const frame = document.querySelector(".frame");
  if (!frame) return;
  frame.dataset.rail = open ? "open" : "closed";
  document.querySelector("[data-rail-open]")?.setAttribute("aria-expanded", String(open));
  if (open) document.querySelector(".rail a, .rail button")?.focus();
}

export function closeRail() {
  railOpen(false);
}

export function startFrame() {
  document.addEventListener("click", (event) => {
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest("[data-theme-toggle]")) setTheme(root.dataset.theme === "dark" ? "light" : "dark");
    if (target?.closest("[data-rail-open]")) railOpen(true);
    if (target?.closest("[data-rail-close]")) railOpen(false);
  });
  document.addEventListener("keydown", (event) => {
    const frame = document.querySelector(".frame");
    if (event.key === "Escape" && frame?.dataset.rail === "open") {
      railOpen(false);
      document.querySelector("[data-rail-open]")?.focus();
      event.stopImmediatePropagation();
    }
  });
  watchConnection();
}

startFrame();
export { announce };

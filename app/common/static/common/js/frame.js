// What every signed-in page has: the drawer on a phone, the theme switch, the word about the connection.
// An entry script: no module imports it, since under two addresses it would run twice.
import { watchConnection } from "./connection.js";
import { isRailOpen, setRail } from "./rail.js";

const root = document.documentElement;

function setTheme(next) {
  root.dataset.theme = next;
  try {
    window.localStorage.setItem("theme", next);
  } catch {
    // Storage may be forbidden; the choice then lasts for this page.
  }
}

document.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest("[data-theme-toggle]")) setTheme(root.dataset.theme === "dark" ? "light" : "dark");
  if (target?.closest("[data-rail-open]")) setRail(true);
  if (target?.closest("[data-rail-close]")) setRail(false);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !isRailOpen()) return;
  setRail(false);
  document.querySelector("[data-rail-open]")?.focus();
  event.stopImmediatePropagation();
});
watchConnection();

// A menu that hangs on a button: opens above everything, closes by itself, moves with the arrow keys.
import { h, icon } from "./dom.js";

function move(event, menu) {
  const items = [...menu.querySelectorAll("[role=menuitem]")];
  const at = items.indexOf(document.activeElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) items[(at + step + items.length) % items.length].focus();
  else if (event.key === "Home") items[0].focus();
  else if (event.key === "End") items.at(-1).focus();
  else if (event.key === "Tab") menu.hidePopover();
  else if (event.key !== "Escape") return;
  if (event.key !== "Tab" && event.key !== "Escape") event.preventDefault();
  // Escape closes the menu and nothing behind it.
  event.stopPropagation();
}

function place(menu, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const below = at.bottom + 4 + height <= window.innerHeight;
  menu.style.left = `${Math.max(8, Math.min(at.left, window.innerWidth - width - 8))}px`;
  menu.style.top = `${Math.max(8, below ? at.bottom + 4 : at.top - height - 4)}px`;
}

/** Open a menu at `button`. `entries`: {icon, words, act, danger} or {icon, words, href, download}. */
export function openMenu(button, label, entries) {
  const close = () => menu.hidePopover();
  const items = entries.filter(Boolean).map((entry) => {
    const inside = [icon(entry.icon, true), entry.words];
    const common = { role: "menuitem", tabindex: "-1", class: entry.danger ? "menu-item danger" : "menu-item" };
    if (entry.href) return h("a", { ...common, href: entry.href, download: entry.download ?? null, onclick: close }, inside);
    return h("button", { ...common, type: "button", onclick: () => { close(); entry.act(); } }, inside);
  });
  const menu = h("div", { class: "menu", role: "menu", "aria-label": label, popover: "auto" }, items);
  menu.addEventListener("keydown", (event) => move(event, menu));
  menu.addEventListener("toggle", (event) => {
    if (event.newState !== "closed") return;
    button.setAttribute("aria-expanded", "false");
    if (menu.contains(document.activeElement) || document.activeElement === document.body) button.focus();
    menu.remove();
  });
  document.body.append(menu);
  button.setAttribute("aria-expanded", "true");
  menu.showPopover();
  place(menu, button);
  items[0]?.focus();
}

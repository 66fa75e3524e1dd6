// The list on the left is a drawer on a phone.

function frame() {
  return document.querySelector(".frame");
}

export function isRailOpen() {
  return frame()?.dataset.rail === "open";
}

export function setRail(open) {
  const target = frame();
  if (!target) return;
  target.dataset.rail = open ? "open" : "closed";
  document.querySelector("[data-rail-open]")?.setAttribute("aria-expanded", String(open));
  if (open) document.querySelector(".rail a, .rail button")?.focus();
}

// What the machine read of one document, page by page, with the passage of a citation marked.
import { ApiError, get } from "../../common/js/api.js";
import { h, icon, pageData, skeleton } from "../../common/js/dom.js";
import { bytes, count } from "../../common/js/format.js";
import { t, tn } from "../../common/js/i18n.js";
import { told } from "../../common/js/sentences.js";
import { markPicture, pagePicture } from "./page-picture.js";

const reader = document.getElementById("reader");
const PART = 100;

/** Where to look: the page, and the passage as offsets into the whole text (code points, as the server counts). */
function wanted() {
  const query = new URLSearchParams(window.location.search);
  const range = /p=(\d+)-(\d+)/.exec(window.location.hash);
  return {
    page: Number(query.get("page")) || null,
    version: Number(query.get("v")) || null,
    passage: range ? { start: Number(range[1]), end: Number(range[2]) } : null,
  };
}

/** The text with the part inside the passage marked. Offsets count code points; strings here count UTF-16 units. */
function marked(page, passage) {
  const points = [...page.text];
  const start = page.start ?? 0;
  const [from, to] = passage ? [passage.start - start, passage.end - start] : [0, 0];
  if (!passage || to <= 0 || from >= points.length) return [page.text];
  const part = (a, b) => points.slice(Math.max(0, a), Math.max(0, b)).join("");
  return [part(0, from), h("mark", { id: "passage", tabindex: "-1" }, part(from, to)), part(to, points.length)];
}

/** Whether a page holds a part of the passage. */
function touches(page, passage) {
  const start = page.start ?? 0;
  return passage !== null && passage.start < start + [...page.text].length && start < passage.end;
}

/** The page as people see it; where the passage stands on it is asked for once the page is there. */
function pictureNode(page, { passage, id, title }, section) {
  if (!page.picture) return null;
  const figure = pagePicture({ page: page.number, picture: page.picture, aspect: page.aspect, boxes: [] },
    { title, gone: () => { side.remove(); section().classList.remove("pictured"); } });
  // As large as it can be and still be seen whole.
  figure.style.maxWidth = `calc((100vh - 128px) * ${page.aspect ?? 0.7})`;
  const side = h("div", { class: "page-side" }, figure);
  if (touches(page, passage)) {
    // Without the places the marked text beside it says the same.
    get(`documents/${id}/pages/${page.number}/?start=${passage.start}&end=${passage.end}`)
      .then((place) => markPicture(figure, place.boxes), () => null);
  }
  return side;
}

function pageNode(page, look, paged) {
  const { passage } = look;
  const text = page.text.trim()
    ? h("div", { class: "read-text", dir: "auto" }, marked(page, passage))
    : h("p", { class: "muted" }, t("Nothing was read on this page. It may hold only pictures."));
  const section = h("section", { class: page.picture ? "read-page pictured" : "read-page", id: `page-${page.number}`, "aria-label": t("Page {number}", { number: page.number }) },
    paged ? h("h2", { class: "page-number num" }, t("Page {number}", { number: page.number })) : null,
    pictureNode(page, look, () => section), text);
  return section;
}

function head(item) {
  const facts = [item.pages ? tn("{pages} page", "{pages} pages", item.pages, { pages: count(item.pages) }) : null, bytes(item.size), item.mime, item.version > 1 ? t("version {version}", { version: item.version }) : null];
  return h("header", { class: "reader-head" },
    h("p", { class: "small" }, h("a", { href: `/documents/?collection=${item.collection_id}`, class: "back" }, icon("left", true), t("Documents"))),
    h("h1", { dir: "auto" }, item.title || item.name),
    h("p", { class: "muted small num" }, [item.title && item.title !== item.name ? item.name : null, ...facts].filter(Boolean).join(" · ")),
    item.source_url ? h("p", { class: "small address-line" }, h("a", { href: item.source_url, rel: "noopener noreferrer", target: "_blank" }, item.source_url)) : null,
    h("p", { class: "muted small" }, t("The text is what the machine read and searches. What is missing in it cannot be found.")));
}

function notes(item, look) {
  const list = (item.warnings ?? []).map((warning) => told(typeof warning === "string" ? warning : warning.message));
  if (look.version && item.serving_version && look.version !== item.serving_version) {
    list.push(t("The passage was taken from version {then}; this is version {now}, so the marked place may have moved.", { then: look.version, now: item.serving_version }));
  }
  if (item.error) list.push(told(item.error.message));
  return list.map((words) => h("p", { class: "callout warn" }, words));
}

function more(words, load) {
  const button = h("button", { type: "button", class: "button compact more", onclick: async () => {
    button.disabled = true;
    try {
      await load(button);
      button.remove();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      button.disabled = false;
      button.textContent = t("{message} Try again", { message: error.message });
    }
  } }, words);
  return button;
}

async function part(id, cursor, limit = PART) {
  return get(`documents/${id}/text/?limit=${limit}&cursor=${cursor}`);
}

async function drawPages(item, look, box) {
  const paged = item.pages !== null && item.pages !== undefined;
  const draw = (pages) => pages.map((page) => pageNode(page, look, paged));
  // A page far inside a long document is shown first, with what is around it.
  const begin = look.page && look.page > PART ? look.page - 3 : 0;
  const first = await part(item.id, begin);
  reader.classList.toggle("with-pictures", first.items.some((page) => page.picture));
  box.replaceChildren(...draw(first.items));
  if (!first.items.length) box.append(h("p", { class: "muted" }, t("Nothing has been read of this document yet.")));
  const later = (cursor) => more(t("Show the next pages"), async () => {
    const next = await part(item.id, cursor);
    box.append(...draw(next.items));
    if (next.next) box.append(later(next.next));
  });
  const earlier = (before) => more(t("Show earlier pages"), async (button) => {
    const from = Math.max(0, before - PART);
    const pages = await part(item.id, from, before - from);
    button.after(...draw(pages.items));
    if (from > 0) box.prepend(earlier(from));
  });
  if (first.next) box.append(later(first.next));
  if (begin > 0) box.prepend(earlier(begin));
}

function reveal(look) {
  const passage = document.getElementById("passage");
  const target = passage ?? (look.page ? document.getElementById(`page-${look.page}`) : null);
  const picture = passage?.closest(".pictured")?.querySelector(".page-side");
  if (picture && window.matchMedia("(max-width: 900px)").matches) {
    // On a phone the text stands below the picture, on which the passage is marked too.
    picture.scrollIntoView({ block: "start" });
    return;
  }
  // A passage longer than the screen is shown from its beginning, not from its middle.
  const short = target?.getBoundingClientRect().height < window.innerHeight / 2;
  target?.scrollIntoView({ block: target.id === "passage" && short ? "center" : "start" });
  if (target?.id === "passage") target.focus({ preventScroll: true });
}

async function begin() {
  const { document: id } = pageData("page");
  const look = wanted();
  reader.replaceChildren(skeleton(8));
  try {
    const item = await get(`documents/${id}/`);
    document.title = `${item.title || item.name} · Tessera`;
    document.getElementById("bar-title").textContent = item.name;
    Object.assign(look, { id, title: item.title || item.name });
    const box = h("div", { class: "read-pages" }, skeleton(8));
    reader.replaceChildren(head(item), ...notes(item, look), box);
    await drawPages(item, look, box);
    reveal(look);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    reader.replaceChildren(h("div", { class: "callout bad", role: "alert" }, icon("alert"),
      h("div", { class: "grow" }, h("p", {}, error.message), h("p", {}, h("a", { href: "/documents/" }, t("Back to the documents"))))));
  }
}

window.addEventListener("hashchange", () => window.location.reload());
void begin();

// A page as a picture with a passage marked on it.
import { h } from "../../common/js/dom.js";
import { t } from "../../common/js/i18n.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 1000;
/** Of the page: a mark reaches a little over its letters. */
const AIR = 0.004;

function marks(boxes) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "page-marks");
  svg.setAttribute("viewBox", "0 0 1 1");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  for (const [left, top, right, bottom] of boxes) {
    const box = document.createElementNS(SVG, "rect");
    box.setAttribute("x", left - AIR);
    box.setAttribute("y", top - AIR / 2);
    box.setAttribute("width", right - left + 2 * AIR);
    box.setAttribute("height", bottom - top + AIR);
    svg.append(box);
  }
  return svg;
}

/** place: {page, picture, aspect, boxes}; `gone` is called where the picture cannot be had. */
export function pagePicture(place, { title, gone = () => {} }) {
  const words = place.boxes.length ? t("Page {page} of {title}, the passage marked", { page: place.page, title }) : t("Page {page} of {title}", { page: place.page, title });
  const image = h("img", { src: place.picture, alt: words, width: WIDTH, height: Math.round(WIDTH / (place.aspect || 0.7)), loading: "lazy", decoding: "async" });
  const figure = h("figure", { class: "page-picture" }, image, place.boxes.length ? marks(place.boxes) : null);
  image.addEventListener("error", () => {
    figure.remove();
    gone();
  });
  return figure;
}

/** Mark boxes on a picture that is there already. */
export function markPicture(figure, boxes) {
  figure.querySelector(".page-marks")?.remove();
  if (boxes.length) figure.append(marks(boxes));
}

/** The middle of the marked lines from the upper edge, 0 to 1; null where nothing is marked. */
export function middle(boxes) {
  if (!boxes.length) return null;
  return (Math.min(...boxes.map((box) => box[1])) + Math.max(...boxes.map((box) => box[3]))) / 2;
}

// Text that grows: settled blocks are rendered once and left alone, only the open tail is drawn again.
import { render, settledLength } from "./markdown.js";
import { h } from "./dom.js";

export class GrowingText {
  /** `decorate(node)` runs on everything newly drawn (citations become buttons). */
  constructor(target, decorate) {
    this.target = target;
    this.decorate = decorate;
    this.text = "";
    this.settled = 0;
    this.frame = 0;
    this.tail = h("div", { class: "tail" });
    target.replaceChildren(this.tail);
  }

  append(text) {
    this.text += text;
    this.frame ||= window.requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const open = this.text.slice(this.settled);
    const cut = settledLength(open);
    if (cut > 0) {
      const block = render(open.slice(0, cut));
      this.decorate(block);
      this.target.insertBefore(block, this.tail);
      this.settled += cut;
    }
    const rest = render(this.text.slice(this.settled), { finished: false });
    this.decorate(rest);
    this.tail.replaceChildren(rest);
  }

  /** Draw the whole once more, as it will look when the page is opened again. */
  finish(text = this.text) {
    window.cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.text = text;
    const whole = render(text);
    this.decorate(whole);
    this.target.replaceChildren(whole);
  }

  stop() {
    window.cancelAnimationFrame(this.frame);
    this.frame = 0;
  }
}

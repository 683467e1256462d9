// What the explorers share: the logits of a whole vocabulary, and the look of their sliders, choices and tables.
// Colours are those of the book, or of JupyterLab, or of a white page.
const GROUND = "var(--pst-color-background, var(--jp-layout-color1, Canvas))";
const INK = "var(--pst-color-text-base, var(--jp-ui-font-color1, CanvasText))";
const BLUE = "var(--llm-kept, #0072b2)";
const BOX =
  `padding: .3em .6em; border: 1px solid; border-radius: .3em; font: inherit; background: ${GROUND}; color: ${INK}`;
const GRID =
  "display: grid; grid-template-columns: repeat(auto-fit, minmax(max(15em, 40%), 1fr)); gap: .6em 2em; margin: .8em 0";
const CELL = "padding: .15em .6em .15em 0; vertical-align: middle; font-weight: 400; text-align:";

// The logits of a prompt of explorer_entry, in descending order.
const logitsOf = (prompt) => {
  const others = prompt.counts.flatMap((count, down) => Array(count).fill((prompt.level - down) * prompt.step));
  return Float64Array.from([...prompt.head, ...others]);
};

const three = (number) => number.toFixed(3);
const many = (number) => number.toLocaleString("en-US");

const element = (tag, style, ...inside) => {
  const made = document.createElement(tag);
  made.style.cssText = style;
  made.append(...inside);
  return made;
};

// A labelled list of names; `chosen` is called with the one that is picked.
const choice = (label, name, options, value, chosen) => {
  const box = element("select", `display: block; width: 100%; ${BOX}`, ...options.map((text) => new Option(text, text)));
  Object.assign(box, { name, value });
  box.addEventListener("change", () => chosen(box.value));
  return { made: element("label", "display: block", label, box), box };
};

// A labelled slider over a list of stops; `moved` is called with the stop that it is moved to. `say` shows a value
// beside the label, and tells a screen reader what the slider now stands for.
const slider = (label, name, stops, moved) => {
  const value = element("span", "font-variant-numeric: tabular-nums");
  const bar = element("input", `display: block; width: 100%; margin: .2em 0; accent-color: ${BLUE}`);
  Object.assign(bar, { type: "range", min: "0", max: String(stops.length - 1), step: "1", name });
  bar.addEventListener("input", () => moved(stops[Number(bar.value)]));
  const head = element("span", "display: flex; gap: .6em", label, value);
  const say = (setting, shown, spoken) => {
    bar.value = String(stops.indexOf(setting));
    value.textContent = shown;
    bar.setAttribute("aria-valuetext", spoken);
  };
  return { made: element("label", "display: block", head, bar), say };
};

const button = (label, pressed) => {
  const made = element("button", BOX, label);
  made.type = "button";
  made.addEventListener("click", pressed);
  return made;
};

// The one sentence that says what came out, announced when it changes.
const resultLine = () => {
  const made = element("output", "display: block; margin: .8em 0; font-weight: 600");
  made.setAttribute("aria-live", "polite");
  return made;
};

// Heads are [text, width, side].
const table = (caption, heads) => {
  const cells = heads.map(([inside, width, side]) => {
    const made = element("th", `${CELL} ${side}; vertical-align: bottom; width: ${width}`, inside);
    made.scope = "col";
    return made;
  });
  const body = element("tbody", "");
  const made = element(
    "table",
    "width: 100%; min-width: 0; table-layout: fixed; border-collapse: collapse; font-variant-numeric: tabular-nums",
    element("caption", "caption-side: top; text-align: left", caption),
    element("thead", "", element("tr", "", ...cells)),
    body,
  );
  made.className = "llm-table";
  return { made, body };
};
const cell = (inside) => element("td", `${CELL} right`, inside);
const row = (name, cells) => {
  const head = element("th", `${CELL} left; overflow: hidden; text-overflow: ellipsis; min-width: 0`, name);
  head.scope = "row";
  return element("tr", "", head, ...cells);
};

// A column of bars from 0 to 1: its head, and a cell with an outline, of which the part `goes` is hatched, and a bar
// over it that is filled.
const axis = () =>
  element("span", "display: flex; justify-content: space-between", element("span", "", "0"), element("span", "", "1"));
const bars = (stays, goes, filled) => {
  const look = "box-sizing: border-box; border: 1px solid; background:";
  const outline = (width, ground) => (width > 0 ? element("div", `${look} ${ground}; width: ${100 * width}%`) : "");
  const hatched = "repeating-linear-gradient(135deg, currentColor 0 1px, transparent 1px 5px)";
  const place = "position: absolute; left: 0; top: .3em; height: .6em; background:";
  const bar = element("div", `${place} ${BLUE}; width: ${100 * filled}%`);
  const both = element("div", "position: relative; height: 1.2em; display: flex; border-left: 1px solid");
  both.append(outline(stays, "none"), outline(goes, hatched), bar);
  return element("td", `${CELL} left`, both);
};

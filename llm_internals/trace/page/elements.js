// Elements are made and never parsed: whatever a token says, it stays text.

const SVG = "http://www.w3.org/2000/svg";

function h(tag, properties = {}, ...children) {
  return furnish(document.createElement(tag), properties, children);
}

function svg(tag, properties = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), properties, children);
}

// Properties: "onclick" listens, "--width" sets a custom property for the style sheet, all else is an attribute.
function furnish(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

// One of several is chosen: the group is one tab stop, and arrow keys move the choice. `mark` is the attribute that says
// which one it is: aria-checked for radio buttons, aria-selected for tabs. Returns a function that shows a choice.
function oneOf(items, mark, choose) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  items.forEach((item, index) => {
    item.addEventListener("click", () => choose(index));
    item.addEventListener("keydown", (event) => {
      if (event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
      let target = index + (steps[event.key] ?? 0);
      if (event.key === "Home") target = 0;
      if (event.key === "End") target = items.length - 1;
      if (target === index || !items[target]) return;
      event.preventDefault();
      choose(target);
      items[target].focus();
    });
  });
  return (chosen) => {
    items.forEach((item, index) => {
      item.setAttribute(mark, String(index === chosen));
      item.tabIndex = index === Math.max(chosen, 0) ? 0 : -1;
    });
  };
}

// A region that scrolls sideways where the window is narrow, by keyboard too.
function scroller(label, ...children) {
  return h("div", { class: "scroller", role: "region", "aria-label": label, tabindex: 0 }, children);
}

const THOUSANDS = new Intl.NumberFormat("en");
const LIST = new Intl.ListFormat("en");

function count(number) {
  return THOUSANDS.format(number);
}

function some(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function probability(p) {
  if (p === 0) return "0";
  if (p < 0.0005) return p < 1e-6 ? p.toExponential(0).replace("e-", "e−") : p.toPrecision(1);
  return p.toFixed(3);
}

function length(norm) {
  return norm >= 1000 ? count(Math.round(norm)) : norm.toPrecision(3);
}

// How strongly a share between 0 and 1 is coloured: the square root lets one hundredth still be seen. Behind text the most
// is less than the full colour, so that it can be read.
function tint(share, most = 1) {
  return `${Math.round(100 * most * Math.sqrt(share))}%`;
}

// Type a text and see its tokens and their ids, cut by the model's own merges.
// data: {"text": where to begin, "examples": [[name, text], ...]}
// content: a vocabulary, as llm_internals/figures/token_view.py describes it

// Text -> pieces -> bytes -> ids, as in llm_internals/tokenizer.py; bytes are written as characters from 0 to 255.
function tokenizer({ bytes, first, pairs, pattern }) {
  const pieces = new RegExp(pattern, "gu");
  const written = [];
  bytes.forEach((id, byte) => (written[id] = String.fromCharCode(byte)));
  const ranks = new Map();
  const packed = Uint8Array.from(atob(pairs), (character) => character.charCodeAt(0));
  for (let rank = 0; 4 * rank < packed.length; rank += 1) {
    const [left, right] = [0, 2].map((at) => packed[4 * rank + at] + 256 * packed[4 * rank + at + 1]);
    ranks.set(65536 * left + right, rank);
    written[first + rank] = written[left] + written[right];
  }
  const rankOf = (left, right) => ranks.get(65536 * left + right) ?? Infinity;

  // Of all neighbours that can be merged, those of lowest rank, the leftmost of equals; again until none is left.
  const merge = (ids) => {
    const waiting = ids.slice(1).map((right, at) => rankOf(ids[at], right));
    for (;;) {
      const rank = Math.min(...waiting);
      if (rank === Infinity) return ids;
      const at = waiting.indexOf(rank);
      ids.splice(at, 2, first + rank);
      waiting.splice(at, 1);
      if (at > 0) waiting[at - 1] = rankOf(ids[at - 1], ids[at]);
      if (at < waiting.length) waiting[at] = rankOf(ids[at], ids[at + 1]);
    }
  };

  const utf8 = (text) => [...new TextEncoder().encode(text)];
  const hex = (number, digits) => number.toString(16).padStart(digits, "0");

  // The message is that of UnencodableError. No character that can't be encoded has a shape of its own.
  const refuse = (character, position, reason) => {
    const code = character.codePointAt(0);
    const lone = code >= 0xd800 && code < 0xe000;
    const name = code < 256 ? `\\x${hex(code, 2)}` : code < 65536 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
    const inBytes = lone ? "none" : utf8(character).map((byte) => hex(byte, 2)).join(" ");
    const about = `U+${hex(code, 4).toUpperCase()}, bytes ${inBytes}`;
    throw new RangeError(`can't encode '${name}' (${about}) at position ${position}: ${reason}`);
  };

  const check = (text) => {
    const characters = [...text];
    characters.forEach((character, position) => {
      if (/\p{Surrogate}/u.test(character)) {
        refuse(character, position, "a lone surrogate is half of a UTF-16 pair and no character");
      }
    });
    characters.forEach((character, position) => {
      const missing = utf8(character).find((byte) => bytes[byte] < 0);
      if (missing !== undefined) refuse(character, position, `byte 0x${hex(missing, 2)} is not in the vocabulary`);
    });
  };

  // The ids of each piece. Throws a RangeError for a character that the vocabulary can't express.
  const encode = (text) => {
    check(text);
    return (text.match(pieces) ?? []).map((piece) => merge(utf8(piece).map((byte) => bytes[byte])));
  };
  return { encode, bytesOf: (id) => written[id] };
}

// A token's bytes so that every character can be seen, as in llm_internals/figures/labels.py.
function visible(written) {
  const data = Uint8Array.from(written, (character) => character.charCodeAt(0));
  const marks = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽" };
  const code = (number, digits) => number.toString(16).padStart(digits, "0");
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    return text.replace(
      /[\p{C}\p{Z}]/gu,
      (character) => marks[character] ?? `\\u${code(character.codePointAt(0), 4)}`,
    );
  } catch {
    return [...data].map((byte) => `\\x${code(byte, 2)}`).join("");
  }
}

function mount(root, data, content) {
  const { encode, bytesOf } = tokenizer(content);

  const GROUND = "var(--pst-color-background, var(--jp-layout-color1, Canvas))";
  const INK = "var(--pst-color-text-base, var(--jp-ui-font-color1, CanvasText))";
  const BOX = `padding: .3em .6em; border: 1px solid; border-radius: .3em; background: ${GROUND}; color: ${INK}`;
  const SHADES = ["rgba(0, 114, 178, .14)", "rgba(230, 159, 0, .20)"];
  const LONGEST = 1000;

  const element = (tag, style, ...inside) => {
    const made = document.createElement(tag);
    made.style.cssText = style;
    made.append(...inside);
    return made;
  };
  const count = (number, name) => `${number.toLocaleString("en-US")} ${name}${number === 1 ? "" : "s"}`;

  // Tokens of one piece touch each other, and after one that ends a line a new row begins.
  const chip = (id, index, isLast) => {
    const text = visible(bytesOf(id));
    const look = `padding: .1em .4em; border: 1px solid rgba(128, 128, 128, .45); border-radius: .3em; color: inherit`;
    const token = element("code", `${look}; white-space: pre; background: ${SHADES[index % 2]}`, text);
    const number = element("span", "font-size: .75em; font-variant-numeric: tabular-nums", String(id));
    const gap = isLast ? ".5em" : "1px";
    const place = `display: flex; flex-direction: column; align-items: center; margin: 0 ${gap} 0 0`;
    const item = element("li", place, token, number);
    if (!text.endsWith("↵")) return [item];
    const lineBreak = element("li", "flex-basis: 100%; height: 0; margin: 0");
    lineBreak.setAttribute("aria-hidden", "true");
    return [item, lineBreak];
  };

  const text = element("textarea", `display: block; box-sizing: border-box; width: 100%; ${BOX}; font-family: monospace`);
  Object.assign(text, { rows: 3, maxLength: LONGEST, spellcheck: false, value: data.text, dir: "auto" });
  text.setAttribute("autocapitalize", "off");
  const label = element("label", "display: block", `A text of yours, up to ${LONGEST.toLocaleString("en-US")} characters`, text);

  const examples = element("div", "display: flex; flex-wrap: wrap; gap: .4em; margin: .5em 0");
  examples.setAttribute("role", "group");
  examples.setAttribute("aria-label", "examples");
  for (const [name, example] of data.examples) {
    const button = element("button", `${BOX}; font: inherit; font-size: .9em; cursor: pointer`, name);
    button.type = "button";
    button.addEventListener("click", () => {
      text.value = example;
      update();
    });
    examples.append(button);
  }

  const result = element("output", "display: block; margin: .6em 0");
  result.setAttribute("aria-live", "polite");
  const tokens = element("ol", "display: flex; flex-wrap: wrap; gap: .4em 0; list-style: none; padding: 0; margin: .6em 0");
  tokens.className = "llm-tokens";
  tokens.setAttribute("role", "list");
  tokens.setAttribute("aria-label", "tokens");

  const summary = (pieces, ids) => {
    const characters = [...text.value].length;
    const bytes = new TextEncoder().encode(text.value).length;
    const rate = ids.length ? `, ${(characters / ids.length).toFixed(2)} characters a token` : "";
    const size = `${count(characters, "character")} (${count(bytes, "byte")})`;
    return `${size} in ${count(pieces.length, "piece")} become ${count(ids.length, "token")}${rate}.`;
  };

  const update = () => {
    try {
      const pieces = encode(text.value);
      const ids = pieces.flat();
      const lasts = pieces.flatMap((piece) => piece.map((_, at) => at === piece.length - 1));
      tokens.replaceChildren(...ids.flatMap((id, index) => chip(id, index, lasts[index])));
      result.textContent = summary(pieces, ids);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      tokens.replaceChildren();
      result.textContent = error.message;
    }
  };
  text.addEventListener("input", update);

  root.append(label, examples, result, tokens);
  update();
}

// A small part of Markdown as a tree of nodes: what a model writes is never HTML. Each character is looked at a bounded number of times.

/** @typedef {string | {tag: string, kids: Node[], href?: string, start?: number}} Node */

const DEEPEST = 5;
const FENCE = /^ {0,3}(```+|~~~+)/, HEADING = /^(#{1,6})\s+(.+)/, QUOTE = /^ {0,3}> ?/, ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])\s+/, RULE = /^ {0,3}([-*_])\s*(?:\1\s*){2,}$/, ROW = /^\s*\|.*\|\s*$/, DASHES = /^[\s|:-]*-[\s|:-]*$/;
const SPECIAL = /[`*_[\\]|\bhttps?:\/\//g, LINK = /\[([^[\]\n]{1,500})\]\(([^()\s]{1,2000})\)/y, ADDRESS = /https?:\/\/[^\s<>"'`)\]]{1,2000}/y;

/** @param {string} tag @param {Node[]} kids @param {{href?: string, start?: number}} [more] @returns {Node} */
const node = (tag, kids, more) => ({ tag, kids, ...more });

/** @param {string} text @returns {Node[]} */
export const parse = (text) => blocks(text.split("\n"), 0);

/** @param {string[]} lines @param {number} depth @returns {Node[]} */
function blocks(lines, depth) {
  const made = [];
  for (let i = 0; i < lines.length; ) {
    const line = lines[i] ?? "";
    const begin = i;
    /** The lines from here on for which it holds. @param {(line: string) => boolean} holds */
    const take = (holds) => {
      while (i < lines.length && holds(lines[i] ?? "")) i++;
      return lines.slice(begin, i);
    };
    const fence = FENCE.exec(line)?.[1];
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (!line.trim()) i++;
    else if (fence) {
      for (i++; i < lines.length && !(lines[i] ?? "").trim().startsWith(fence); ) i++;
      made.push(node("pre", [lines.slice(begin + 1, i++).join("\n")]));
    } else if (heading) made.push(node(`h${heading[1]?.length}`, inline(lines[i++]?.replace(/^#+\s+/, "") ?? "")));
    else if (RULE.test(line)) made.push(node("hr", [])), i++;
    else if (depth < DEEPEST && QUOTE.test(line)) made.push(node("blockquote", blocks(take((one) => QUOTE.test(one)).map((one) => one.replace(QUOTE, "")), depth + 1)));
    else if (depth < DEEPEST && item) {
      const ordered = /\d/.test(item[2] ?? "");
      const within = take((one) => !one.trim() || /^\s/.test(one) || /\d/.test(ITEM.exec(one)?.[2] ?? (ordered ? "" : "1")) === ordered);
      made.push(node(ordered ? "ol" : "ul", items(within, depth), { start: parseInt(item[2] ?? "") || 1 }));
    } else if (ROW.test(line) && DASHES.test(lines[i + 1] ?? "")) {
      const rows = take((one) => ROW.test(one)).filter((_, n) => n !== 1);
      made.push(node("table", rows.map((row, n) => node("tr", cells(row).map((cell) => node(n ? "td" : "th", inline(cell)))))));
    } else {
      i++;
      made.push(node("p", inline([line, ...take((one) => one.trim() !== "" && ![FENCE, HEADING, QUOTE, ITEM].some((what) => what.test(one))).slice(1)].join("\n"))));
    }
  }
  return made;
}

/** @param {string} row */
const cells = (row) => row.trim().slice(1, -1).split("|").map((cell) => cell.trim());

/** @param {string[]} lines @param {number} depth @returns {Node[]} */
function items(lines, depth) {
  /** @type {string[][]} */
  const found = [];
  let indent = 0;
  for (const line of lines) {
    const begins = ITEM.exec(line);
    if (begins && (begins[1]?.length ?? 0) < Math.max(indent, 1)) {
      indent = begins[0].length;
      found.push([line.slice(indent)]);
    } else found.at(-1)?.push(line.replace(new RegExp(`^\\s{0,${indent}}`), ""));
  }
  return found.map((one) => node("li", blocks(one, depth + 1)));
}

/** @param {string} text @param {number} [depth] @returns {Node[]} */
function inline(text, depth = 0) {
  /** @type {Node[]} */
  const made = [];
  const dead = new Set();
  let done = 0;
  const special = new RegExp(SPECIAL);
  /** @param {number} from @param {number} to @param {Node} one */
  const put = (from, to, one) => {
    if (from > done) made.push(text.slice(done, from));
    made.push(one);
    done = special.lastIndex = to;
  };
  for (let found; (found = special.exec(text)); ) {
    const at = found.index, sign = text[at] ?? "";
    if (sign === "\\") {
      if (/[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) put(at, at + 2, text[at + 1] ?? "");
    } else if (sign === "[") {
      const [all, words = "", href = ""] = matchAt(LINK, text, at) ?? [];
      if (all && isSafe(href)) put(at, at + all.length, node("a", depth < DEEPEST ? inline(words, DEEPEST) : [words], { href }));
    } else if (sign === "h") {
      const href = matchAt(ADDRESS, text, at)?.[0].replace(/[.,;:!?]+$/, "");
      if (href) put(at, at + href.length, node("a", [href], { href }));
    } else {
      let length = 1;
      while (text[at + length] === sign) length++;
      special.lastIndex = at + length;
      const mark = sign.repeat(length);
      if (length > (sign === "`" ? 8 : 3) || depth >= DEEPEST || dead.has(mark) || !opens(text, at, length, sign)) continue;
      const end = closing(text, mark, at + length);
      if (end < 0) dead.add(mark);
      else if (sign === "`") put(at, end + length, node("code", [text.slice(at + length, end)]));
      else {
        const kids = inline(text.slice(at + length, end), depth + 1);
        put(at, end + length, length === 1 ? node("em", kids) : node("strong", length === 2 ? kids : [node("em", kids)]));
      }
    }
  }
  return done < text.length ? [...made, text.slice(done)] : made;
}

/** @param {string} text @param {number} at @param {number} length @param {string} sign */
const opens = (text, at, length, sign) => sign === "`" || (/\S/.test(text[at + length] ?? " ") && !(sign === "_" && /\w/.test(text[at - 1] ?? " ")));

/** Where exactly this mark comes again and can close. @param {string} text @param {string} mark @param {number} from */
function closing(text, mark, from) {
  const sign = mark[0] ?? "";
  for (let at = from; (at = text.indexOf(mark, at)) >= 0; ) {
    let end = at + mark.length;
    while (text[end] === sign) end++;
    const exact = end - at === mark.length && at > from;
    if (exact && (sign === "`" || (/\S/.test(text[at - 1] ?? " ") && !(sign === "_" && /\w/.test(text[end] ?? " "))))) return at;
    at = end;
  }
  return -1;
}

/** @param {RegExp} pattern @param {string} text @param {number} at */
function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** @param {string} href */
const isSafe = (href) => /^(https?:\/\/|mailto:)/i.test(href);

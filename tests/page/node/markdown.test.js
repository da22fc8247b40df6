// Markdown becomes a tree of known tags and texts, in time that grows with its length.

import assert from "node:assert/strict";
import { test } from "node:test";

const { parse } = await import(process.env.TIMBAL_WEB + "/markdown.js");

const flat = (nodes) => nodes.map((node) => (typeof node === "string" ? node : `<${node.tag}${node.href ? ` ${node.href}` : ""}>${flat(node.kids)}</${node.tag}>`)).join("");
const TAGS = new Set("p pre code strong em ul ol li blockquote hr table tr th td a h1 h2 h3 h4 h5 h6".split(" "));
const tags = (nodes) => nodes.flatMap((node) => (typeof node === "string" ? [] : [node.tag, ...tags(node.kids)]));

const CASES = {
  "a heading and emphasis": ["# One *two* **three _four_**", "<h1>One <em>two</em> <strong>three <em>four</em></strong></h1>"],
  "lists within lists": ["- a\n- b\n  1. c\n", "<ul><li><p>a</p></li><li><p>b</p><ol><li><p>c</p></li></ol></li></ul>"],
  "code keeps its signs": ["`*a*`\n\n```js\n**b**\n```\nc", "<p><code>*a*</code></p><pre>**b**</pre><p>c</p>"],
  "a fence that is not closed": ["```\na\n\nb", "<pre>a\n\nb</pre>"],
  "links that are safe": ["[a](https://b.c) <http://d.e>. mail [me](mailto:a@b.c)", "<p><a https://b.c>a</a> <<a http://d.e>http://d.e</a>>. mail <a mailto:a@b.c>me</a></p>"],
  "links that are not": ["[a](javascript:x) [b](data:text/html,x) [c](//d.e)", "<p>[a](javascript:x) [b](data:text/html,x) [c](//d.e)</p>"],
  "HTML is text": ["<b onclick=x>a</b> &lt;", "<p><b onclick=x>a</b> &lt;</p>"],
  "names and sums are no emphasis": ["snake_case_name 2 * 3 * 4 \\*a\\*", "<p>snake_case_name 2 * 3 * 4 *a*</p>"],
  "quotes": ["> a\n> b", "<blockquote><p>a\nb</p></blockquote>"],
  "tables": ["| a | b |\n|---|:-:|\n| 1 | *2* |", "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><em>2</em></td></tr></table>"],
  "nothing": ["", ""],
};
for (const [name, [text, tree]] of Object.entries(CASES)) test(name, () => assert.equal(flat(parse(text)), tree));

const HOSTILE = {
  asterisks: "*".repeat(10_000), "open emphasis": "*a ".repeat(200_000), brackets: "[".repeat(600_000), "open links": "[a](".repeat(150_000), ticks: "`".repeat(600_000),
  "ticks of all lengths": Array.from({ length: 1000 }, (_, n) => "`".repeat(n + 1) + "a").join(""), quotes: ">".repeat(600_000), "list in list": "- ".repeat(300_000),
  underscores: "_a".repeat(300_000), spaces: " ".repeat(600_000) + "|", fences: "```\n".repeat(100_000), mixed: "*a **b ***c `d ".repeat(50_000), "far ends": "* ".repeat(200_000) + "a*", addresses: "http://".repeat(80_000),
};
for (const [name, text] of Object.entries(HOSTILE)) {
  test(`${name} take no time`, () => {
    const tree = (some) => { const begin = performance.now(); const made = parse(some); return [made, performance.now() - begin]; };
    tree(text.slice(0, text.length / 4));
    const [, quarter] = tree(text.slice(0, text.length / 4));
    const [made, all] = tree(text);
    assert.ok(all < Math.max(12 * quarter, 2000), `${quarter} ms for a quarter of it, ${all} ms for all`);
    assert.ok(tags(made).every((tag) => TAGS.has(tag)));
  });
}

// SPDX-License-Identifier: Apache-2.0

// Searches the sections of all pages. The index is a script, so that this works from files, too.
const root = new URL("./", document.currentScript.src);
const box = document.getElementById("search");
const results = document.getElementById("results");
const most = 30;
let loading;

function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("search-index.js", root);
    script.onload = () => resolve(sections);
    script.onerror = reject;
    document.head.append(script);
  });
  return loading;
}

// score is 0 unless each word is in the section. Words in headings and titles count more, and decisions less.
function score({ url, title, heading, text }, words) {
  let sum = 0;
  for (const word of words) {
    const points = 8 * heading.toLowerCase().includes(word) + 4 * title.toLowerCase().includes(word) + text.toLowerCase().includes(word);
    if (!points) return 0;
    sum += points;
  }
  sum += 8 * (heading.toLowerCase() === words.join(" "));
  return url.includes("/decisions/") ? sum / 2 : sum;
}

// marked appends text to an element, with the words marked.
function marked(element, text, words) {
  const pattern = new RegExp(words.map((w) => w.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "gi");
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    const mark = document.createElement("mark");
    mark.textContent = match[0];
    element.append(text.slice(end, match.index), mark);
    end = match.index + match[0].length;
  }
  element.append(text.slice(end));
  return element;
}

// around returns the part of a text that begins shortly before the first of the words.
function around(text, words) {
  const found = words.map((w) => text.toLowerCase().indexOf(w)).filter((i) => i >= 0);
  const start = text.lastIndexOf(" ", Math.max(0, Math.min(...found, text.length) - 60)) + 1;
  return (start > 0 ? "… " : "") + text.slice(start, start + 180);
}

async function search() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = await load();
  if (words.join() !== box.value.toLowerCase().split(/\s+/).filter(Boolean).join()) return;
  const found = all.map((s) => [score(s, words), s]).filter(([n]) => n > 0).sort(([a], [b]) => b - a);
  results.replaceChildren(...found.slice(0, most).map(([, { url, title, heading, text }]) => {
    const link = document.createElement("a");
    link.href = new URL(url, root);
    link.append(marked(document.createElement("b"), heading === title ? title : title + " › " + heading, words));
    link.append(marked(document.createElement("span"), around(text, words), words));
    return link;
  }));
  if (!found.length) {
    results.append(Object.assign(document.createElement("p"), { textContent: "No section has all these words." }));
  }
  results.hidden = !words.length;
}

box.addEventListener("input", search);
box.addEventListener("focus", load);
document.addEventListener("keydown", (event) => {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const inSearch = document.activeElement === box || at >= 0;
  if (event.key === "/" && document.activeElement !== box) box.focus();
  else if (event.key === "Escape" && inSearch) { results.hidden = true; box.focus(); }
  else if (event.key === "ArrowDown" && inSearch) links[Math.min(at + 1, links.length - 1)]?.focus();
  else if (event.key === "ArrowUp" && inSearch) (links[at - 1] ?? box).focus();
  else if (event.key === "Enter" && document.activeElement === box) links[0]?.click();
  else return;
  event.preventDefault();
});
document.addEventListener("click", (event) => {
  if (!results.contains(event.target) || event.target.closest("a")) results.hidden = event.target !== box || !box.value;
});

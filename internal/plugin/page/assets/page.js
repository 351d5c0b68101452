// SPDX-License-Identifier: Apache-2.0
"use strict";

// Keeps the page up to date: takes fragments from the stream and makes the document equal to them, piece by piece, so
// that what is open, focused or scrolled stays so.

const main = document.getElementById("main");
const link = document.getElementById("link");
const title = document.title;
let stream = null;

// parse makes the element of a fragment. Nothing in it is run.
function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content.firstElementChild;
}

// match makes an element equal to another one. What the reader opened stays open.
function match(old, wanted) {
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of [...wanted.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const now = [...old.childNodes], next = [...wanted.childNodes];
  next.forEach((child, i) => {
    if (i >= now.length) old.append(child);
    else if (now[i].nodeType !== child.nodeType || now[i].nodeName !== child.nodeName) now[i].replaceWith(child);
    else if (child.nodeType !== Node.ELEMENT_NODE) { if (now[i].data !== child.data) now[i].data = child.data; }
    else if (child.className === "ago" && now[i].dateTime === child.dateTime) return;
    else if (!now[i].isEqualNode(child)) match(now[i], child);
  });
  now.slice(next.length).forEach((child) => child.remove());
}

// apply takes in one update: fragments that are new or differ, then the order of all.
function apply({ order, fragments }) {
  for (const [id, html] of Object.entries(fragments)) {
    const wanted = parse(html), old = document.getElementById(id);
    if (old) match(old, wanted);
    else main.append(wanted);
  }
  const kept = new Set(order);
  for (const child of [...main.children]) {
    if (child.id && !kept.has(child.id)) child.remove();
  }
  let place = main.firstElementChild;
  for (const id of order) {
    while (place && !place.id) place = place.nextElementSibling;
    if (place && place.id === id) place = place.nextElementSibling;
    else main.insertBefore(document.getElementById(id), place);
  }
  if (order.length === 0) main.append(parse('<section class="card" id="gone"><h2>It is no longer there</h2><p><a href="/">Show everything</a></p></section>'));
  tell();
}

// tell puts what is wrong into the title, where it shows in a tab that is not looked at.
function tell() {
  const totals = document.getElementById("totals");
  const wrong = totals ? Number(totals.dataset.wrong) : 0;
  document.title = wrong > 0 ? "(" + wrong + " wrong) " + title : title;
  age();
}

// age formats how long ago an event was. It counts from the time when the page was read, because this clock may differ from the server's.
function age() {
  const read = document.querySelector("#read time");
  if (!read) return;
  const now = Date.parse(read.dateTime);
  for (const time of main.querySelectorAll("time.ago")) {
    if (!time.title) time.title = time.textContent;
    const words = since((now - Date.parse(time.dateTime)) / 1000) + " ago";
    if (time.textContent !== words) time.textContent = words;
  }
}

function since(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 172800) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86400) + " d";
}

function say(state, words) {
  link.className = "link " + state;
  if (link.textContent !== words) link.textContent = words;
}

function listen() {
  if (stream) return;
  stream = new EventSource(document.body.dataset.stream);
  stream.onopen = () => say("live", "Live");
  stream.onmessage = (event) => apply(JSON.parse(event.data));
  stream.onerror = () => {
    const read = document.querySelector("#read time");
    say("lost", "Connection lost" + (read ? ": this is old, of " + read.textContent : ""));
    // A server that answers with an error ends the stream for good; one that is away is asked again by the browser.
    if (stream && stream.readyState === EventSource.CLOSED) { hush(); setTimeout(listen, 5000); }
  };
}

function hush() {
  if (stream) stream.close();
  stream = null;
}

// A hidden page needs no updates, and frees its connection for visible pages.
document.addEventListener("visibilitychange", () => {
  if (!document.body.dataset.stream) return;
  if (document.hidden) { hush(); say("", "Paused"); } else listen();
});

// A tile leads to its machine, not only to its zone.
main.addEventListener("click", (event) => {
  const tile = event.target.closest("[data-machine]"), zone = event.target.closest("a.tiles");
  if (!tile || !zone || event.metaKey || event.ctrlKey) return;
  event.preventDefault();
  location.href = zone.href + "#machine/" + tile.dataset.machine;
});

tell();
if (document.body.dataset.stream) listen();

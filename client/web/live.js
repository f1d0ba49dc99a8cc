'use strict';
// Keeps a page as it is now while it is looked at. Without this script its tables are those of when it was opened.

const period = 2000;
const away = document.getElementById('away');
let seen = new Date(), tag = '', asks = false;

const say = (text) => { away.textContent = text; away.hidden = !text; };
const controls = (main) => [...main.querySelectorAll('a, button, input, .scroll')];

// The focus and each table's scroll stay where they were.
function replace(main, next) {
  if (main.innerHTML === next.innerHTML) return;
  const focused = controls(main).indexOf(document.activeElement);
  const scrolled = [...main.querySelectorAll('.scroll')].map((box) => box.scrollLeft);
  main.replaceWith(next);
  next.querySelectorAll('.scroll').forEach((box, i) => { box.scrollLeft = scrolled[i] ?? 0; });
  controls(next)[focused]?.focus({preventScroll: true});
}

async function refresh() {
  const main = document.getElementById('main');
  const isBusy = main.contains(document.activeElement) && document.activeElement.tagName === 'INPUT' || !getSelection().isCollapsed;
  if (document.hidden || isBusy || asks) return;
  asks = true;
  try {
    const reply = await fetch(location.href, {headers: {'If-None-Match': tag}});
    const next = reply.status !== 304 && new DOMParser().parseFromString(await reply.text(), 'text/html').getElementById('main');
    if (reply.status >= 500) return say(`${next.textContent.trim()} This page is of ${seen.toLocaleTimeString()}.`);
    seen = new Date();
    say('');
    if (!next) return;
    replace(main, next);
    tag = reply.headers.get('ETag');
  } catch {
    say(`cubind-web does not answer. This page is of ${seen.toLocaleTimeString()}.`);
  } finally {
    asks = false;
  }
}

if (document.getElementById('main').hasAttribute('data-live')) setInterval(refresh, period);

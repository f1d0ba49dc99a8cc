'use strict';
// Elements and texts. Names come from others: they become text nodes and attributes, never markup.

const report = JSON.parse(document.getElementById('data').textContent);

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null));
  return element;
}

const html = (name, attributes, ...children) => build(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) =>
  build(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);

const tip = (text) => svg('title', {}, text);
const absent = (why) => html('p', {class: 'absent'}, prose(why.charAt(0).toUpperCase() + why.slice(1)));

// What a text has between backticks is code.
const prose = (text) => text.split('`').map((part, i) => (i % 2 ? html('code', {}, part) : part));

const joined = (object) => Object.entries(object).map(([name, value]) => `${name}=${value}`).join(', ');
const count = (number, word) => `${number.toLocaleString('en')} ${word}${number === 1 ? '' : 's'}`;
const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;
const part = (share) => (share > 0 && share < 0.005 ? '< 1 %' : percent(share));
const times = (ratio) => `${ratio.toFixed(ratio < 10 ? 2 : 0)}×`;

function duration(us) {
  if (us < 1e3) return `${us.toPrecision(4)} µs`;
  if (us < 1e6) return `${(us / 1e3).toPrecision(4)} ms`;
  return us < 6e7 ? `${(us / 1e6).toFixed(1)} s` : `${Math.floor(us / 6e7)} min ${Math.round((us % 6e7) / 1e6)} s`;
}

function age(from, to) {
  const hours = (Date.parse(to) - Date.parse(from)) / 36e5;
  if (!(hours >= 0)) return '–';
  if (hours < 1) return `${Math.floor(hours * 60)} min`;
  return hours < 48 ? `${Math.floor(hours)} h` : `${Math.floor(hours / 24)} d`;
}

function sorted(numbers) {
  return Float64Array.from(numbers).sort();
}

// Of sorted numbers, the middle two averaged.
function quantile(ordered, share) {
  const place = (ordered.length - 1) * share;
  const low = Math.floor(place);
  return ordered[low] + (ordered[Math.ceil(place)] - ordered[low]) * (place - low);
}

const median = (numbers) => quantile(sorted(numbers), 0.5);

// A command with a button that copies it, where the browser lets a page do so.
function command(text) {
  const copy = html('button', {onclick: () => navigator.clipboard.writeText(text).then(() => (copy.textContent = 'copied'))}, 'copy');
  return html('div', {class: 'tools'}, html('code', {}, text), navigator.clipboard ? copy : null);
}

function section(id, question, ...content) {
  return html('section', {id}, html('h2', {}, question), content);
}

// A table that sorts by each column, filters its rows by words and shows the first of them.

// A column: {name, value(row): what sorts, text(row): what shows, number, wide}. `choose`: {limit, changed(rows)}
// gives every row a box; a chosen row stays in sight. With `cards` a row is a list of its cells, for long texts.
function table(columns, rows, {choose, cards} = {}) {
  let order = null;
  let shown = 25;
  let chosen = [];
  const texts = new Map(rows.map((row) => [row, columns.map((one) => one.text(row)).join(' ').toLowerCase()]));
  const filter = html('input', {type: 'search', placeholder: 'filter', 'aria-label': 'filter the rows', oninput: draw});
  const note = html('span', {class: 'quiet'});
  const more = html('button', {onclick: () => { shown += 200; draw(); }}, 'show more');
  const body = html('tbody');
  const heads = columns.map((column) => html('th', {class: column.number ? 'number' : '', scope: 'col'},
    html('button', {onclick: () => sortBy(column)}, column.name)));

  function sortBy(column) {
    order = {column, down: order !== null && order.column === column ? !order.down : false};
    heads.forEach((head, i) => {
      if (columns[i] === column) head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    draw();
  }

  // What is not known comes last in both directions.
  function compare(a, b) {
    const [x, y] = [order.column.value(a), order.column.value(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    const less = typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y));
    return order.down ? -less : less;
  }

  function box(row) {
    return html('td', {}, html('input', {
      type: 'checkbox', 'aria-label': 'show this row', onchange: (event) => {
        chosen = chosen.filter((one) => one !== row);
        if (event.target.checked) chosen = [...chosen, row].slice(-choose.limit);
        draw();
        choose.changed(chosen);
      }}));
  }

  function line(row) {
    const cells = columns.map((one) =>
      html('td', {class: one.number ? 'number' : one.wide ? 'wide' : '', 'data-name': cards && one.name}, one.cell ? one.cell(row) : one.text(row)));
    const boxes = choose ? [box(row)] : [];
    if (choose) boxes[0].firstChild.checked = chosen.includes(row);
    return html('tr', {class: row.bad ? 'bad' : ''}, boxes, cells);
  }

  function draw() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => words.every((word) => texts.get(row).includes(word)));
    if (order) found.sort(compare);
    body.replaceChildren(...found.filter((row, i) => i < shown || chosen.includes(row)).map(line));
    note.textContent = found.length > shown ? `${shown} of ${count(found.length, 'row')}` : count(found.length, 'row');
    more.hidden = found.length <= shown;
  }

  draw();
  return html('div', {}, html('div', {class: 'tools'}, filter, note),
    html('div', {class: 'scroll', tabindex: 0}, html('table', {class: cards && 'cards'}, html('thead', {}, html('tr', {}, choose ? html('th') : null, heads)), body)),
    html('div', {class: 'tools'}, more));
}

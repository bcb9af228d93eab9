"use strict";
(function () {
  var root = document.documentElement;

  // Colours: as the system says, light, dark.
  var themes = [["", "Colours: as the system says", "◐"], ["light", "Colours: light", "○"], ["dark", "Colours: dark", "●"]];
  var theme = 0;
  var button = document.getElementById("theme");
  button.addEventListener("click", function () {
    theme = (theme + 1) % themes.length;
    if (themes[theme][0]) root.dataset.theme = themes[theme][0];
    else delete root.dataset.theme;
    button.setAttribute("aria-label", themes[theme][1]);
    button.textContent = themes[theme][2];
  });

  // Tables: a click on the head of a column sorts by it, the largest first; another click, the other way round.
  function value(row, column) {
    var cell = row.cells[column];
    return cell.dataset.v === undefined ? cell.textContent.trim().toLowerCase() : Number(cell.dataset.v);
  }
  document.querySelectorAll("table.sortable").forEach(function (table) {
    table.tHead.addEventListener("click", function (event) {
      var head = event.target.closest("th");
      if (!head || !event.target.closest("button")) return;
      var column = head.cellIndex;
      var rows = Array.from(table.tBodies[0].rows);
      var numbers = rows.length && typeof value(rows[0], column) === "number";
      var down = head.getAttribute("aria-sort") === "none" ? numbers : head.getAttribute("aria-sort") === "ascending";
      rows.sort(function (a, b) {
        var x = value(a, column), y = value(b, column);
        var order = x < y ? -1 : x > y ? 1 : 0;
        return down ? -order : order;
      });
      Array.from(head.parentNode.cells).forEach(function (cell) { cell.setAttribute("aria-sort", "none"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    });
  });

  // Errors: only those that all filters let through, some at a time.
  var form = document.getElementById("filters");
  if (form) {
    var items = Array.from(document.getElementById("list").children);
    var texts = items.map(function (item) { return item.textContent.toLowerCase(); });
    var shown = document.getElementById("shown");
    var field = function (name) { return form.elements[name] ? form.elements[name].value : ""; };
    var more = document.getElementById("more");
    var step = 25, most = step;
    var filter = function () {
      var kind = field("kind"), type = field("type"), text = field("text").trim().toLowerCase(), sure = Number(field("sure"));
      var n = 0;
      items.forEach(function (item, k) {
        var fits = (!kind || item.dataset.kind === kind)
          && (!type || item.dataset.types.split("\n").indexOf(type) >= 0)
          && Number(item.dataset.sure) >= sure
          && texts[k].indexOf(text) >= 0;
        n += fits;
        item.hidden = !fits || n > most;
      });
      form.elements.least.value = sure.toFixed(2);
      shown.textContent = n + " of " + items.length + " errors";
      more.hidden = n <= most;
      more.textContent = "Show " + Math.min(step, n - most) + " more of " + (n - most);
    };
    var restart = function () { most = step; filter(); };
    more.addEventListener("click", function () { most += step; filter(); });
    form.addEventListener("input", restart);
    form.addEventListener("reset", function () { setTimeout(restart); });
    filter();
    form.addEventListener("submit", function (event) { event.preventDefault(); });
  }

  // Features: those of one label.
  var chosen = document.getElementById("feature-label");
  if (chosen) {
    chosen.addEventListener("input", function () {
      document.querySelectorAll(".by-label").forEach(function (part) { part.hidden = part.dataset.label !== chosen.value; });
    });
  }
})();

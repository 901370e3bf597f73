// Completion of MDX: asks the server what may stand at the caret. Without scripts the fields stay plain.
(() => {
  const form = document.querySelector("form[data-complete]");
  if (!form) return;
  const token = document.querySelector('meta[name="form-token"]').content;
  let list = null, owner = null, items = [], chosen = 0, start = 0, asked = 0, waiting = 0;

  function close() {
    if (list) list.remove();
    if (owner) { owner.removeAttribute("aria-activedescendant"); owner.removeAttribute("aria-controls"); }
    list = null; items = [];
  }

  function mark(index) {
    chosen = (index + items.length) % items.length;
    [...list.children].forEach((item, number) => item.setAttribute("aria-selected", String(number === chosen)));
    owner.setAttribute("aria-activedescendant", list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  }

  function take(index) {
    const caret = owner.selectionStart, text = items[index].text, field = owner;
    field.setRangeText(text, start, caret, "end");
    close();
    field.focus();
  }

  function show(field, found) {
    close();
    if (!found.suggestions.length) return;
    owner = field; items = found.suggestions; start = found.start;
    list = document.createElement("ul");
    list.className = "suggestions"; list.id = field.id + "-suggestions";
    list.setAttribute("role", "listbox"); list.setAttribute("aria-label", "MDX");
    items.forEach((item, number) => {
      const line = document.createElement("li"), name = document.createElement("span"), kind = document.createElement("small");
      line.id = list.id + "-" + number; line.setAttribute("role", "option");
      name.textContent = item.text; kind.textContent = item.label === item.text ? item.kind : item.label;
      line.append(name, kind);
      line.addEventListener("mousedown", event => { event.preventDefault(); take(number); });
      list.append(line);
    });
    field.parentElement.append(list);
    field.setAttribute("aria-controls", list.id);
    mark(0);
  }

  async function ask(field) {
    const mine = ++asked, caret = field.selectionStart;
    const parameters = [...form.querySelectorAll("[data-parameter]")].map(input => input.value);
    const response = await fetch(form.dataset.complete, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf-token": token },
      body: JSON.stringify({ text: field.value, caret, parameters }),
    });
    if (!response.ok || mine !== asked || field.selectionStart !== caret || document.activeElement !== field) return;
    show(field, await response.json());
  }

  for (const field of form.querySelectorAll("textarea.mdx")) {
    field.parentElement.classList.add("anchor");
    field.setAttribute("aria-autocomplete", "list");
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      const before = field.value.slice(0, field.selectionStart);
      if (/[[.@\w]$/.test(before)) waiting = setTimeout(ask, 150, field); else close();
    });
    field.addEventListener("blur", close);
    field.addEventListener("keydown", event => {
      if (event.ctrlKey && event.key === " ") { event.preventDefault(); ask(field); return; }
      if (!list || owner !== field) return;
      if (event.key === "ArrowDown") { event.preventDefault(); mark(chosen + 1); }
      else if (event.key === "ArrowUp") { event.preventDefault(); mark(chosen - 1); }
      else if (event.key === "Enter" || event.key === "Tab") { event.preventDefault(); take(chosen); }
      else if (event.key === "Escape") { event.preventDefault(); close(); }
    });
  }
})();

// The little that pages cannot do by themselves: theme, filters in the address,
// walking the path, opening folds, copying. Everything shown is already in the page.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Theme: what the system says, unless the reader chose. Before the page is drawn.
  const store = (value) => {
    try {
      if (value === undefined) return localStorage.getItem("caulk-theme");
      localStorage.setItem("caulk-theme", value);
    } catch { /* a browser may forbid storage for pages from disk */ }
    return null;
  };
  const setTheme = (theme) => { document.documentElement.style.colorScheme = theme; };
  if (store()) setTheme(store());
  const theme = () => {
    const button = $(".theme");
    button.hidden = false;
    const isDark = () => {
      const chosen = document.documentElement.style.colorScheme;
      return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    };
    const label = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
    button.addEventListener("click", () => {
      const next = isDark() ? "light" : "dark";
      setTheme(next);
      store(next);
      label();
    });
    label();
  };

  // The list: filters live behind the `#` of the address, so that it can be shared.
  const list = () => {
    const form = $("#filters");
    if (!form) return;
    const body = $("#rows");
    const rows = all("tr", body).map((row) => ({ row, text: `${row.textContent} ${row.dataset.print}`.toLowerCase() }));
    const fields = [...form.elements].filter((field) => field.name);
    const orders = {
      confidence: (a, b) => a.row.dataset.rank - b.row.dataset.rank,
      rule: (a, b) => a.row.dataset.rule.localeCompare(b.row.dataset.rule),
    };
    let order = "";
    const matches = ({ row, text }, wanted) => Object.entries(wanted).every(([key, value]) => {
      if (!value || key === "sort") return true;
      if (key === "q") return value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
      const own = row.dataset[key] ?? "";
      return own === value || (key === "folder" && own.startsWith(`${value}/`));
    });
    const apply = () => {
      const wanted = Object.fromEntries(fields.map((field) => [field.name, field.value]));
      let count = 0;
      for (const entry of rows) {
        const hide = !matches(entry, wanted);
        if (entry.row.hidden !== hide) entry.row.hidden = hide;
        if (!hide) count += 1;
      }
      if (wanted.sort !== order) {
        order = wanted.sort;
        const sorted = orders[order] ? [...rows].sort(orders[order]) : rows;
        body.append(...sorted.map((entry) => entry.row));
      }
      $("#none").hidden = count > 0;
      $("#shown").textContent = count === rows.length
        ? `${count.toLocaleString("en")} findings` : `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} findings`;
      return wanted;
    };
    const fromAddress = () => {
      const hash = location.hash.slice(1);
      if (hash && !hash.includes("=")) return apply();
      const wanted = new URLSearchParams(hash);
      for (const field of fields) field.value = wanted.get(field.name) ?? "";
      return apply();
    };
    const toAddress = () => {
      const set = Object.entries(apply()).filter(([, value]) => value);
      const address = `#${new URLSearchParams(set)}`;
      history.replaceState(null, "", set.length ? address : "#");
    };
    form.hidden = false;
    form.addEventListener("input", toAddress);
    form.addEventListener("change", toAddress);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(toAddress));
    addEventListener("hashchange", () => {
      fromAddress();
      if (location.hash.includes("=")) $("#findings").scrollIntoView();
    });
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || typing(event)) return;
      event.preventDefault();
      form.elements.q.focus();
    });
    fromAddress();
    if (location.hash.includes("=")) $("#findings").scrollIntoView();
  };

  const typing = (event) => event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);

  // The path: buttons, keys, links and graph nodes all lead through `go`.
  const path = () => {
    const links = all("[data-go]");
    const follow = (event) => {
      const step = event.currentTarget.dataset.go ?? event.currentTarget.dataset.node;
      if (!step || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(Number(step));
    };
    let now = 0;
    const go = (step, quiet) => {
      if (step < 1 || step > links.length) return;
      now = step;
      for (const link of links) link.toggleAttribute("aria-current", false);
      const link = links[step - 1];
      link.setAttribute("aria-current", "step");
      for (const old of all(".now")) old.classList.remove("now");
      const mark = $(`#step-${step}`);
      for (let part = mark; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
      mark?.classList.add("now");
      $(`.graph [data-node="${step}"]`)?.classList.add("now");
      $("#walk").textContent = `${step} of ${links.length}`;
      $("#say").textContent = `Step ${step} of ${links.length}: ${link.innerText}`;
      $("#prev").disabled = step === 1;
      $("#next").disabled = step === links.length;
      if (!quiet) history.replaceState(null, "", `#step-${step}`);
      mark?.scrollIntoView({ block: "center" });
      link.scrollIntoView({ block: "nearest" });
    };
    if (links.length) {
      for (const hidden of all(".walker, .keys")) hidden.hidden = false;
      $("#prev").addEventListener("click", () => go(now - 1));
      $("#next").addEventListener("click", () => go(now + 1));
      for (const link of [...links, ...all(".graph a")]) link.addEventListener("click", follow);
    }
    const open = (selector) => { const link = $(selector); if (link) location.href = link.href; };
    const keys = {
      j: () => go(now + 1), n: () => go(now + 1), ArrowRight: () => go(now + 1),
      k: () => go(now - 1), p: () => go(now - 1), ArrowLeft: () => go(now - 1),
      "[": () => open("[rel=prev]"), "]": () => open("[rel=next]"), u: () => open("#up"),
    };
    if (!$("body.one")) return;
    addEventListener("keydown", (event) => {
      if (typing(event) || !keys[event.key]) return;
      if (event.key.startsWith("Arrow") && event.target.closest?.(".scroll, .code")) return;
      event.preventDefault();
      keys[event.key]();
    });
    const fromAddress = () => {
      const step = /^#step-(\d+)$/.exec(location.hash);
      if (step) go(Number(step[1]), true);
    };
    addEventListener("hashchange", fromAddress);
    fromAddress();
  };

  // Folds: the whole file comes as a script, because pages from disk may not fetch.
  const sources = new Map();
  const waiting = new Map();
  window.caulkSource = (number, lines) => {
    sources.set(number, lines);
    for (const then of waiting.get(number) ?? []) then(lines);
    waiting.delete(number);
  };
  const source = (number, then) => {
    if (sources.has(number)) return then(sources.get(number));
    if (waiting.has(number)) return waiting.get(number).push(then);
    waiting.set(number, [then]);
    const script = document.createElement("script");
    script.src = `../data/source-${number}.js`;
    return document.head.append(script);
  };
  const CHUNK = 60;
  const folds = () => {
    document.addEventListener("click", ({ target }) => {
      const fold = target.closest?.(".fold");
      if (!fold) return;
      source(Number(fold.dataset.source), (lines) => {
        const [from, to] = [Number(fold.dataset.from), Number(fold.dataset.to)];
        const up = "up" in fold.dataset;
        const first = up ? Math.max(from, to - CHUNK + 1) : from;
        const last = up ? to : Math.min(to, from + CHUNK - 1);
        const rows = [];
        for (let line = first; line <= last; line += 1) {
          const row = document.createElement("div");
          row.className = "ln";
          row.innerHTML = `<span class="no" data-n="${line}"></span><code>${lines[line - 1] ?? ""}</code>`;
          rows.push(row);
        }
        if (up) fold.after(...rows); else fold.before(...rows);
        const left = up ? first - from : to - last;
        if (up) fold.dataset.to = first - 1; else fold.dataset.from = last + 1;
        fold.textContent = left === 1 ? "1 line" : `${left} lines`;
        if (left === 0) fold.remove();
      });
    });
  };

  const copying = () => {
    for (const button of all("[data-copy]")) {
      button.hidden = false;
      const label = button.textContent;
      button.addEventListener("click", async () => {
        const text = document.getElementById(button.dataset.copy).textContent;
        let done = true;
        try {
          await navigator.clipboard.writeText(text);
        } catch {
          const area = document.createElement("textarea");
          area.value = text;
          document.body.append(area);
          area.select();
          done = document.execCommand("copy");
          area.remove();
          button.focus();
        }
        button.textContent = done ? "Copied" : "Copying failed";
        setTimeout(() => { button.textContent = label; }, 2000);
      });
    }
  };

  document.addEventListener("DOMContentLoaded", () => { theme(); list(); path(); folds(); copying(); });
})();

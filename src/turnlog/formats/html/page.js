"use strict";
{
  // Windows wait as JSON until they are near, searched to or printed. Their HTML was escaped when the file was written.
  const waiting = (section) => section.querySelector(":scope > script.window");
  const pieces = (section) => {
    const data = waiting(section);
    return data ? JSON.parse(data.textContent) : Array.from(section.children, (child) => child.outerHTML);
  };
  // Code is coloured without an element more: ranges of its text, by what almost all languages share.
  const TOKENS =
    /(?<comment>#(?![{\[]).*|\/\/.*|\/\*[^]*?\*\/|--\s.*)|(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|(?<number>\b\d[\w.]*)|(?<word>\b(?:abstract|as|async|await|break|case|catch|class|const|continue|def|default|do|elif|else|enum|except|export|extends|false|False|finally|fn|for|from|func|function|if|impl|import|in|interface|is|lambda|let|match|mut|new|nil|None|not|null|or|and|package|pass|pub|public|private|raise|return|self|static|struct|switch|this|throw|true|True|try|type|use|var|void|where|while|with|yield)\b)/g;
  const colours = new Map();
  if (globalThis.Highlight) {
    for (const name of ["comment", "string", "number", "word"]) {
      colours.set(name, new Highlight());
      CSS.highlights.set(name, colours.get(name));
    }
  }
  const colour = (element) => {
    for (const code of colours.size ? element.querySelectorAll('code[class^="language-"]') : []) {
      const node = code.firstChild;
      if (!node || node.data.length > 50000 || /-(text|txt|diff|markdown|md)$/.test(code.className)) continue;
      for (const found of node.data.matchAll(TOKENS)) {
        const range = new Range();
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        colours.get(Object.keys(found.groups).find((name) => found.groups[name] !== undefined)).add(range);
      }
    }
  };
  let unfolded = false;
  const makeLive = (section) => {
    if (!waiting(section)) return;
    section.innerHTML = pieces(section).join("");
    section.style.minHeight = "";
    if (unfolded) for (const each of section.querySelectorAll("details")) each.open = true;
    colour(section);
  };
  const observer = new IntersectionObserver(
    (seen) => {
      for (const { isIntersecting, target } of seen) {
        if (!isIntersecting) continue;
        observer.unobserve(target);
        makeLive(target);
      }
    },
    { rootMargin: "800px" },
  );
  for (const section of document.querySelectorAll("section")) {
    if (!waiting(section)) continue;
    section.style.minHeight = `${section.dataset.count * (section.closest("nav") ? 2 : 4)}rem`;
    observer.observe(section);
  }
  const sections = Array.from(document.querySelectorAll("main > section"));
  const live = () => sections.filter((section) => !waiting(section));
  live().forEach(colour);
  document.querySelector("button.unfold").addEventListener("click", ({ target }) => {
    unfolded = !unfolded;
    target.setAttribute("aria-pressed", unfolded);
    for (const section of live()) for (const each of section.querySelectorAll("details")) each.open = unfolded;
  });

  const block = (number) => {
    const section = sections.findLast((each) => Number(each.dataset.start) <= number);
    makeLive(section);
    return section.children[number - Number(section.dataset.start)];
  };
  let shown = null;
  const show = (number) => {
    shown?.classList.remove("found");
    shown = block(number);
    shown.classList.add("found");
    shown.scrollIntoView({ block: "start" });
    return shown;
  };
  const sessions = JSON.parse(document.querySelector("script.sessions").textContent);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-block], a[data-session]");
    if (!link) return;
    event.preventDefault();
    show(Number(link.dataset.block ?? sessions[link.dataset.session]));
  });

  // Search reads texts as the page would show them, also those that no element shows yet.
  const plain = (html) =>
    html
      .replace(/<\/?(?:strong|em|code|s|a|b|i|del|ins)\b[^>]*>/g, "")
      .replace(/<[^>]*>/g, "\n")
      .replace(/&lt;/g, "<")
      .replace(/&gt;/g, ">")
      .replace(/&quot;/g, '"')
      .replace(/&#39;/g, "'")
      .replace(/&nbsp;/g, "\u00a0")
      .replace(/&amp;/g, "&")
      .toLowerCase();
  let texts = null;
  const allTexts = () => (texts ??= sections.flatMap((section) => pieces(section).map(plain)));
  const input = document.querySelector("input");
  const output = document.querySelector("output");
  let hits = [];
  let current = -1;
  let asked = "";

  const mark = (element, query) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const ranges = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      // Where lower case has another length, places in it are not places in the text.
      if (text.length !== node.data.length) continue;
      for (let at = text.indexOf(query); at >= 0 && ranges.length < 1000; at = text.indexOf(query, at + query.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + query.length);
        ranges.push(range);
      }
    }
    if (globalThis.Highlight) CSS.highlights.set("found", new Highlight(...ranges));
    return ranges[0];
  };
  const step = (by) => {
    if (!hits.length) return;
    // Before the first step there is no current hit: back from there is the last one.
    current = (Math.max(current, by < 0 ? 0 : -1) + by + hits.length) % hits.length;
    output.value = `${current + 1} of ${hits.length}`;
    const found = show(hits[current]);
    if (found.matches("details")) found.open = true;
    for (const inner of found.querySelectorAll("details")) inner.open = true;
    const range = mark(found, asked);
    if (range) scrollBy(0, range.getBoundingClientRect().top - innerHeight / 3);
  };
  const search = () => {
    asked = input.value.toLowerCase();
    hits = asked ? allTexts().flatMap((text, number) => (text.includes(asked) ? [number] : [])) : [];
    current = -1;
    output.value = asked ? (hits.length === 0 ? "nothing" : `${hits.length}`) : "";
  };
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 150);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    clearTimeout(timer);
    if (input.value.toLowerCase() !== asked) search();
    step(event.shiftKey ? -1 : 1);
  });
  for (const button of document.querySelectorAll("button[data-step]")) {
    button.addEventListener("click", () => step(Number(button.dataset.step)));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target === input) return;
    event.preventDefault();
    input.focus();
  });

  // Paper folds nothing and has no later.
  let opened = [];
  addEventListener("beforeprint", () => {
    sections.forEach(makeLive);
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
}

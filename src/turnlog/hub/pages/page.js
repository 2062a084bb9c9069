/** The pages of a hub that are needed before anything else is: joining, signing in, connecting a machine, the team. */

const main = document.querySelector("main");

/** The secret of the page's address; taken out of it before anything else may read or keep it. */
const secret = /(?:^|#)code=([\w-]+)$/.exec(location.hash)?.[1] ?? "";
if (secret) history.replaceState(null, "", location.pathname + location.search);

const pages = { "/join": join, "/sign-in": signIn, "/connect": connect, "/shared": shared, "/share": share, "/team": team };

/** An element with attributes and children; texts are only ever texts. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

async function ask(method, path, body) {
  const response = await fetch(path, {
    method,
    headers: { "x-turnlog-csrf": "1", ...(body !== undefined && { "content-type": "application/json" }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const answer = response.status === 204 ? null : await response.json().catch(() => null);
  if (response.ok) return answer;
  const error = new Error(answer?.error?.message ?? `${response.status} ${response.statusText}`);
  error.status = response.status;
  throw error;
}

function show(title, ...children) {
  document.title = `${title} · turnlog`;
  main.className = "narrow";
  main.replaceChildren(make("div", { class: "card" }, make("h1", {}, title), ...children));
}

function text(words, attributes = {}) {
  return make("p", attributes, words);
}

/** A form whose failure is shown below its fields. */
function form(label, fields, submit, attributes = {}) {
  const problem = make("p", { role: "alert" });
  const button = make("button", { class: "main" }, label);
  const send = async (event) => {
    event.preventDefault();
    button.disabled = true;
    problem.textContent = "";
    try {
      await submit(Object.fromEntries(new FormData(event.target)));
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      button.disabled = false;
    }
  };
  return make("form", { onsubmit: send, ...attributes }, ...fields, button, problem);
}

function field(label, attributes) {
  return make("label", {}, label, make("input", { autocomplete: "off", ...attributes }));
}

async function provider(code) {
  const { openid } = await ask("GET", "/hub/v1/sign-in");
  const address = `/sign-in/openid${code ? `?code=${encodeURIComponent(code)}` : ""}`;
  return openid && make("a", { class: "button main", href: address }, `Sign in with ${openid}`);
}

async function join() {
  const accept = async ({ name }) => {
    await ask("POST", "/hub/v1/invitations/accept", { code: secret, name });
    location.assign("/");
  };
  if (!secret) {
    show("Join", text("Open the link of your invitation again: it ends with a code."));
    return;
  }
  const named = form("Join", [field("Your name", { name: "name", required: true, maxlength: 200 })], accept);
  show("You are invited to turnlog", await provider(secret), named, text(
    "The link works once. Your sessions stay yours: nobody else sees one until you show it.", { class: "quiet" }));
}

async function signIn() {
  const redeem = async ({ code }) => {
    await ask("POST", "/hub/v1/sign-in", { code: /code=([\w-]+)$/.exec(code.trim())?.[1] ?? code.trim() });
    location.assign(new URLSearchParams(location.search).get("to")?.match(/^\/(?!\/)[^\\]*$/)?.[0] ?? "/");
  };
  if (secret) {
    show("Signing in", text("One moment."));
    try {
      await redeem({ code: secret });
      return;
    } catch (error) {
      show("Sign in", text(error.message, { role: "alert" }));
      return;
    }
  }
  const refused = new URLSearchParams(location.search).get("reason") === "not-invited";
  show(
    "Sign in to turnlog",
    refused ? text("You are known, but in no team of this hub: ask for an invitation.", { role: "alert" }) : null,
    await provider(""),
    form("Sign in", [field("Link from a browser that is signed in", { name: "code", required: true })], redeem),
    text("A browser of yours makes such a link under Team. Whoever runs the hub: turnlog hub sign-in NAME.", {
      class: "quiet",
    }),
  );
}

async function connect() {
  const given = new URLSearchParams(location.search).get("code") ?? "";
  const look = async ({ code }) => {
    const path = `/hub/v1/device/${encodeURIComponent(code)}`;
    const machine = await ask("GET", path);
    const answer = (allow) => async () => {
      await ask("POST", path, { allow });
      show(allow ? "Connected" : "Refused", text(allow ? `${machine.machine} may send your sessions now.` : "Nothing was changed."),
        make("a", { href: "/" }, "Sessions"));
    };
    show(
      "Connect this machine?",
      text(machine.machine, { class: "code" }),
      text(machine.platform, { class: "quiet" }),
      text("It shows the code, and asks to send sessions as yours. Say yes only if you began this yourself."),
      make("button", { class: "main", onclick: answer(true) }, "Connect"),
      make("button", { onclick: answer(false) }, "Refuse"),
    );
  };
  await ask("GET", "/hub/v1/me");
  show("Connect a machine", form("Go on", [
    field("The code that the machine shows", { name: "code", required: true, value: given, autocapitalize: "characters" }),
  ], look));
}

async function shared() {
  const opened = await ask("POST", "/hub/v1/links/open", { code: secret || "none" });
  location.replace(`/sessions/${encodeURIComponent(opened.session).replaceAll("%3A", ":")}`);
}

async function share() {
  const session = new URLSearchParams(location.search).get("session") ?? "";
  const path = `/hub/v1/sessions/${encodeURIComponent(session)}`;
  const [me, found, { items }] = await Promise.all([
    ask("GET", "/hub/v1/me"),
    ask("GET", `${path}/sharing`),
    ask("GET", "/hub/v1/members"),
  ]);
  const page = make("a", { href: `/sessions/${encodeURIComponent(session).replaceAll("%3A", ":")}` }, session);
  if (found.owner !== me.user.id) {
    show("Who sees this session", make("p", {}, page), text("Only its owner decides that."));
    return;
  }
  const choice = (value, label) =>
    make("option", { value, selected: found.visibility === value }, label);
  const select = make("select", { name: "visibility" }, choice("private", "Only me"), choice("people", "These people"),
    choice("team", "Everybody in the team"));
  const people = make("fieldset", {}, make("legend", {}, "People"), ...items.filter((each) => each.user.id !== me.user.id).map((each) =>
    make("label", { class: "check" }, make("input", { type: "checkbox", name: "person", value: each.user.id, checked: found.people.includes(each.user.id) }), each.user.name)));
  const follow = () => { people.hidden = select.value !== "people"; };
  select.addEventListener("change", follow);
  follow();
  const save = async () => {
    const named = [...people.querySelectorAll("input:checked")].map((each) => each.value);
    await ask("PUT", `${path}/sharing`, { visibility: select.value, people: select.value === "people" ? named : [] });
    await share();
  };
  const made = make("p", { role: "status" });
  const link = async () => {
    const { address } = await ask("POST", `${path}/links`, { days: 7 });
    await share();
    document.querySelector("[role=status]").replaceChildren("Anybody with this link reads the session, for a week: ", make("code", {}, address));
  };
  const end = (each) => async () => {
    await ask("DELETE", `${path}/links/${each.id}`);
    await share();
  };
  show(
    "Who sees this session",
    make("p", {}, page),
    found.visibility === "link" ? text("Whoever has one of the links below. Another choice ends them.") : null,
    form("Save", [make("label", {}, "It is shown to", select), people], save),
    make("h2", {}, "Links"),
    make("ul", {}, ...found.links.map((each) => make("li", {},
      make("span", {}, each.expires_at ? `until ${new Date(each.expires_at).toLocaleString()}` : "without end"),
      make("button", { onclick: end(each) }, "Take back")))),
    form("Make a link", [], link),
    made,
    text("Subagents are shown with it. Who reads it is noted, for you to see under Team.", { class: "quiet" }),
    make("a", { href: "/team" }, "Team"),
  );
}

async function team() {
  const me = await ask("GET", "/hub/v1/me");
  const admin = me.scopes.includes("admin");
  const [members, machines, tokens, audit, sessions, open] = await Promise.all([
    ask("GET", "/hub/v1/members"),
    ask("GET", "/hub/v1/machines"),
    ask("GET", "/hub/v1/tokens"),
    ask("GET", "/hub/v1/audit?limit=50"),
    ask("GET", "/api/sessions?limit=20"),
    admin ? ask("GET", "/hub/v1/invitations") : { items: [] },
  ]);
  const when = (time) => (time ? new Date(time).toLocaleString() : "never");
  const act = (label, method, path, question) => {
    const run = async () => {
      if (!confirm(question)) return;
      await ask(method, path).catch((error) => alert(error.message));
      await team();
    };
    return make("button", { onclick: run }, label);
  };
  const list = (items, empty) => (items.length ? make("ul", {}, ...items) : text(empty, { class: "quiet" }));
  const line = (words, quiet, ...more) => make("li", {}, make("span", {}, words), make("span", { class: "quiet" }, quiet), ...more);
  const made = make("p", { role: "status" });
  const link = async (path, body) => {
    const { address } = await ask("POST", path, body);
    made.replaceChildren("Send this link; it works once: ", make("code", {}, address));
  };
  const choices = ["member", "viewer", "admin", ...(me.role === "owner" ? ["owner"] : [])];
  const role = make("select", { name: "role" }, ...choices.map((each) => make("option", {}, each)));
  document.title = "Team · turnlog";
  main.className = "";
  main.replaceChildren(
    make("h1", {}, me.team.name || "Team"),
    make("p", { class: "quiet" }, `You are ${me.user.name}, ${me.role}. `, make("a", { href: "/" }, "Sessions")),
    made,
    make("section", {}, make("h2", {}, "People"),
      list(members.items.map((each) => line(each.user.name, each.role, admin && each.user.id !== me.user.id
        ? act("Remove", "DELETE", `/hub/v1/members/${each.user.id}`, `Remove ${each.user.name}? Their access ends at once.`)
        : null)), "Nobody."),
      admin ? form("Invite", [make("label", {}, "As", role)], (given) => link("/hub/v1/invitations", given), { class: "row" }) : null,
      ...(open.items.length ? [make("h2", {}, "Open invitations"), list(open.items.map((each) => line(each.role, `until ${when(each.expires_at)}`,
        act("Take back", "DELETE", `/hub/v1/invitations/${each.id}`, "Take this invitation back?"))), "")] : [])),
    make("section", {}, make("h2", {}, "Your machines"),
      list(machines.items.map((each) => line(each.name, `last seen ${when(each.seen_at)}`,
        act("End", "DELETE", `/hub/v1/machines/${each.id}`, `End the access of ${each.name}?`))), "None: turnlog hub connect joins one.")),
    make("section", {}, make("h2", {}, "Your browsers and tokens"),
      list(tokens.items.map((each) => line(each.kind === "browser" ? "Browser" : each.name, `last used ${when(each.used_at)}`,
        act("End", "DELETE", `/hub/v1/tokens/${each.id}`, "End this access?"))), "None."),
      make("button", { onclick: () => link("/hub/v1/sign-in/links", {}) }, "Sign in another browser of mine"),
      make("button", { onclick: async () => { await ask("POST", "/hub/v1/sign-out"); location.assign("/sign-in"); } }, "Sign out")),
    make("section", {}, make("h2", {}, "Newest sessions"),
      list(sessions.items.map((each) => line(each.title ?? each.id, when(each.updated_at),
        make("a", { href: `/share?session=${encodeURIComponent(each.id)}` }, "Who sees it"))), "None.")),
    make("section", {}, make("h2", {}, "Who read what is yours, and what was done"),
      list(audit.items.map((each) => line(`${audit.names[each.actor] ?? each.actor}: ${each.action} ${each.subject}`, when(each.last_at))),
        "Nobody yet.")),
  );
}

try {
  await pages[location.pathname]();
} catch (error) {
  if (error.status === 401) location.replace(`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`);
  else show("This did not work", text(error.message, { role: "alert" }), make("a", { href: "/" }, "Sessions"));
}

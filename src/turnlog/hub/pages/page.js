/** The pages of a hub that are needed before anything else is: joining, signing in, connecting a machine, links. */

const main = document.querySelector("main");

/** The secret of the page's address; taken out of it before anything else may read or keep it. */
const secret = /(?:^|#)code=([\w-]+)$/.exec(location.hash)?.[1] ?? "";
if (secret) history.replaceState(null, "", location.pathname + location.search);

const pages = { "/join": join, "/sign-in": signIn, "/connect": connect, "/shared": shared };

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

/** The message of an error as a sentence; an id or a name at its beginning stays as it is. */
function sentence(message) {
  return message.replace(/^[a-z](?=[a-z]* )/, (letter) => letter.toUpperCase());
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
      problem.textContent = sentence(error.message);
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
    try {
      await ask("POST", "/hub/v1/invitations/accept", { code: secret, name });
    } catch (error) {
      if (error.status !== 403) throw error;
      // It works no better the next time.
      show("This invitation has ended", text(sentence(error.message), { role: "alert" }),
        text("Ask whoever gave it to you for another one."), make("a", { href: "/sign-in" }, "Sign in"));
      return;
    }
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

/** Why somebody is here again. */
const REASONS = {
  __proto__: null,
  "not-invited": "You are known, but in no team of this hub: ask for an invitation.",
  refused: "You were not signed in: this was refused where you sign in. You can try again.",
  ended: "You were not signed in: this sign-in is too old, or was begun in another browser. Begin again.",
  failed: "You were not signed in: the hub cannot use the answer of where you sign in. Its log has the reason.",
  away: "You were not signed in: where you sign in does not answer. Try again in a moment.",
};

/** The address on this hub that somebody wanted to see. */
function wanted() {
  try {
    const to = new URL(new URLSearchParams(location.search).get("to") ?? "/", location.origin);
    return to.origin === location.origin ? to.href : "/";
  } catch {
    return "/";
  }
}

async function signIn() {
  const redeem = async ({ code }) => {
    await ask("POST", "/hub/v1/sign-in", { code: /code=([\w-]+)$/.exec(code.trim())?.[1] ?? code.trim() });
    location.assign(wanted());
  };
  if (secret) {
    show("Signing in", text("One moment."));
    try {
      await redeem({ code: secret });
      return;
    } catch (error) {
      show("Sign in", text(sentence(error.message), { role: "alert" }));
      return;
    }
  }
  const reason = REASONS[new URLSearchParams(location.search).get("reason")];
  show(
    "Sign in to turnlog",
    reason ? text(reason, { role: "alert" }) : null,
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
  if (!secret) {
    const ended = "It has expired or was revoked. Ask whoever gave it to you for another one.";
    const again = "Open the link again: it ends with a code.";
    const to = new URLSearchParams(location.search).get("to");
    show(to === null ? "A link to a session" : "This link has ended", text(to === null ? again : ended, { role: "alert" }),
      make("a", { href: to === null ? "/sign-in" : `/sign-in?to=${encodeURIComponent(to)}` }, "Sign in"));
    return;
  }
  const opened = await ask("POST", "/hub/v1/links/open", { code: secret });
  location.replace(`/sessions/${encodeURIComponent(opened.session).replaceAll("%3A", ":")}`);
}

try {
  await pages[location.pathname]();
} catch (error) {
  if (error.status === 401) location.replace(`/sign-in?to=${encodeURIComponent(location.pathname + location.search)}`);
  else show("This did not work", text(sentence(error.message), { role: "alert" }), make("a", { href: "/" }, "Sessions"));
}

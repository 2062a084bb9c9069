// The chat is named in the address, so that it can be reloaded, bookmarked and opened in another tab.
import type { UIMessage } from "ai";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat";

const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;
addEventListener("hashchange", () => location.reload());

const answer = await fetch(`/api/chat/${encodeURIComponent(id)}`);
const messages: UIMessage[] = await answer.json();
const page = document.getElementById("page");
if (page) createRoot(page).render(<Chat id={id} messages={messages} />);

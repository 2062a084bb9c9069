/** What the keys do. Opened by "?" or the button in the bar. */

import { useMemo } from "react";
import { useKeys } from "./keys";

/** Keys apart by blanks; "or" is a word between them. */
const KEYS: { where: string; keys: [key: string, does: string][] }[] = [
  {
    where: "Everywhere",
    keys: [
      ["Ctrl K", "go to a session, a word, a tag, a page"],
      ["/", "search everything"],
      ["?", "this help"],
      ["Esc", "leave a field, close a dialog"],
    ],
  },
  {
    where: "In lists",
    keys: [
      ["j k or ↓ ↑", "next and previous"],
      ["Enter", "open"],
      ["s", "star the session"],
      ["e", "its name, tags and note"],
      ["x", "while selecting: select the session"],
    ],
  },
  {
    where: "In a session",
    keys: [
      ["j k", "next and previous entry"],
      ["n p", "next and previous prompt; while finding, hit"],
      ["e E", "next and previous error"],
      ["d D", "next and previous edit"],
      ["f or Ctrl F", "find in this session"],
      ["[ ]", "previous and next session of the list"],
      ["Enter", "open or fold the entry"],
      ["x", "open all, fold all, reset"],
      ["r", "raw records of the focused or hovered part"],
      ["c", "copy a link to it"],
      ["Home End", "start and end"],
      ["R", "replay from here"],
      ["Space . ,", "in a replay: play or pause, step forward and back"],
    ],
  },
];

const ID = "key-help";

export function openKeyHelp(): void {
  const dialog = document.getElementById(ID);
  if (dialog instanceof HTMLDialogElement && !dialog.open) dialog.showModal();
}

export function KeyHelp() {
  useKeys(useMemo(() => ({ "?": openKeyHelp }), []));
  return (
    <dialog id={ID} className="key-help" aria-labelledby={`${ID}-title`}>
      <form method="dialog">
        <h2 id={`${ID}-title`}>Keyboard shortcuts</h2>
        {KEYS.map(({ where, keys }) => (
          <section key={where}>
            <h3>{where}</h3>
            <dl>
              {keys.map(([key, does]) => (
                <div key={key}>
                  <dt>
                    {key.split(" ").map((word) => (word === "or" ? word : <kbd key={word}>{word}</kbd>))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <button type="submit" className="button">
          Close
        </button>
      </form>
    </dialog>
  );
}

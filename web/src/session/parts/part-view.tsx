/** Any part that is neither a tool call nor reasoning. A kind nobody knows is a neutral box with its JSON. */

import { useState } from "react";
import type { Json, Part, SourceUrlPart, TextPart } from "@/api/types";
import { JsonCode } from "@/content/json-view";
import { Markdown } from "@/content/markdown";
import { Icon } from "@/design/icon";
import { useAll } from "../disclosure";
import { FileView } from "./file-view";
import { WholeText, wholeOf } from "./whole-text";

export function PartView({ part, breaks = false }: { part: Part; breaks?: boolean }) {
  switch (part.type) {
    case "text":
      return <Text part={part} breaks={breaks} />;
    case "file":
      return <FileView part={part} />;
    case "source-url":
      return <SourceLink part={part} />;
    case "source-document":
      return <p className="source">{part.title}</p>;
    case "data":
      return <FoldedBox title={part.name} value={part.data} />;
    case "unknown":
      return <Box title={`Unknown part: ${part.kind}`} value={part.data} />;
    default:
      return <Box title={part.type} value={part as unknown as Json} />;
  }
}

function Text({ part, breaks }: { part: TextPart; breaks: boolean }) {
  return (
    <>
      <WholeText preview={part.text} whole={wholeOf(part.blob)}>
        {(text) => <Markdown text={text} breaks={breaks} />}
      </WholeText>
      {part.citations && <Citations part={part} />}
    </>
  );
}

function Citations({ part }: { part: TextPart }) {
  return (
    <ul className="citations" aria-label="Sources">
      {part.citations?.map((citation, index) => (
        <li key={index}>
          <WebLink
            url={citation.url}
            label={citation.title ?? citation.document ?? citation.url ?? "source"}
          />
        </li>
      ))}
    </ul>
  );
}

function SourceLink({ part }: { part: SourceUrlPart }) {
  return (
    <p className="source">
      <Icon name="link" size={14} /> <WebLink url={part.url} label={part.title ?? part.url} />
    </p>
  );
}

function WebLink({ url, label }: { url: string | undefined; label: string }) {
  if (!url || !/^https?:\/\//i.test(url)) return label;
  return (
    <a className="link" href={url} target="_blank" rel="noopener noreferrer nofollow">
      {label}
    </a>
  );
}

function Box({ title, value }: { title: string; value: Json }) {
  return (
    <figure className="box">
      <figcaption>{title}</figcaption>
      <JsonCode value={value} />
    </figure>
  );
}

/** The values of what is noted, without the marks around them. */
export function glanceOf(value: Json): string {
  if (value === null || typeof value !== "object") return String(value).slice(0, GLANCE);
  const fields = Object.entries(value).filter(([name]) => name !== "type");
  const said = fields.map(([name, field]) => {
    const text = Array.isArray(field) ? field.map(glanceOf).join(", ") : glanceOf(field);
    return Array.isArray(value) ? text : `${name} ${text}`;
  });
  return said.join(" · ").slice(0, GLANCE);
}

const GLANCE = 200;

/** What an application or an agent notes for itself: one line until somebody looks. */
function FoldedBox({ title, value }: { title: string; value: Json }) {
  const all = useAll() === true;
  const [opened, setOpened] = useState(false);
  const open = opened || all;
  return (
    <div className="box-fold">
      <button
        type="button"
        className="fold fold-faint"
        aria-expanded={open}
        onClick={() => setOpened(!opened)}
        data-toggle
      >
        <Icon name="record" size={14} />
        <span>{title}</span>
        {!open && <span className="fold-preview">{glanceOf(value)}</span>}
      </button>
      {open && (
        <div className="box">
          <JsonCode value={value} />
        </div>
      )}
    </div>
  );
}

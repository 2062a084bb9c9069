/** Lists of the team's page: rows of a name, a few facts and buttons, and a question before something ends. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { getJson, type Parameters } from "@/api/client";
import type { Items } from "@/api/types";
import { FormDialog } from "@/design/form-dialog";
import { Problem } from "@/design/problem";
import { useHubChange } from "./use-hub";

interface HubListProps<Item> {
  title: string;
  path: string;
  parameters?: Parameters;
  empty: string;
  row: (item: Item) => ReactNode;
  of: (item: Item) => string;
}

export function HubList<Item>({ title, path, parameters = {}, empty, row, of }: HubListProps<Item>) {
  const list = useQuery({
    queryKey: [path, parameters],
    queryFn: ({ signal }) => getJson<Items<Item>>(path, parameters, signal),
    placeholderData: (previous) => previous,
  });
  return (
    <section className="team-section" aria-label={title}>
      <h2>{title}</h2>
      {list.isError && <Problem error={list.error} what={title} />}
      {list.data?.items.length === 0 && <p className="team-note">{empty}</p>}
      <ul>
        {list.data?.items.map((item) => (
          <li key={of(item)} className="team-row">
            {row(item)}
          </li>
        ))}
      </ul>
    </section>
  );
}

interface EndButtonProps {
  label: string;
  /** What is asked before. */
  question: string;
  path: string;
}

/** Deletes something, after a question. */
export function EndButton({ label, question, path }: EndButtonProps) {
  const [open, setOpen] = useState(false);
  const change = useHubChange();
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        {label}
      </button>
      {open && (
        <FormDialog
          label={label}
          onSave={() => change.mutate({ method: "DELETE", path }, { onSuccess: () => setOpen(false) })}
          onClose={() => setOpen(false)}
          isSaving={change.isPending}
          action={{ label, failed: "Nothing was changed" }}
          error={change.error}
        >
          <p className="form-text">{question}</p>
        </FormDialog>
      )}
    </>
  );
}

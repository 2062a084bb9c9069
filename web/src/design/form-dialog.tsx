/** A small form in a dialog, with Save (or another action) and Cancel. Escape closes it, Ctrl+Enter saves. */

import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef } from "react";
import "./form-dialog.css";

interface FormDialogProps {
  label: string;
  /** Called with the value of each named field, without spaces around it; null for an empty one. */
  onSave: (text: (name: string) => string | null, form: FormData) => void;
  onClose: () => void;
  isSaving: boolean;
  /** What the button says, and how a failure begins. */
  action?: { label: string; failed: string };
  /** Why the last attempt failed. */
  error: Error | null;
  children: ReactNode;
}

const SAVE = { label: "Save", failed: "Not saved" };

export function FormDialog(props: FormDialogProps) {
  const { label, onSave, onClose, isSaving, action = SAVE, error, children } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);

  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    onSave((name) => String(form.get(name) ?? "").trim() || null, form);
  };
  const saveOnCtrlEnter = (event: KeyboardEvent<HTMLFormElement>) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
  };
  return (
    <dialog ref={dialog} className="form-dialog" aria-label={label} onClose={onClose}>
      <form onSubmit={save} onKeyDown={saveOnCtrlEnter}>
        {children}
        {error && (
          <p className="form-problem" role="alert">
            {action.failed}: {error.message}
          </p>
        )}
        <p className="form-buttons">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="button primary" disabled={isSaving}>
            {action.label}
          </button>
        </p>
      </form>
    </dialog>
  );
}

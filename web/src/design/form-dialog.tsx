/** A small form in a dialog, with Save and Cancel. Escape closes it, Ctrl+Enter saves. */

import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef } from "react";
import "./form-dialog.css";

interface FormDialogProps {
  label: string;
  /** Called with the value of each named field, without spaces around it; null for an empty one. */
  onSave: (text: (name: string) => string | null, form: FormData) => void;
  onClose: () => void;
  isSaving: boolean;
  /** Why the last attempt failed. */
  error: Error | null;
  children: ReactNode;
}

export function FormDialog({ label, onSave, onClose, isSaving, error, children }: FormDialogProps) {
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
            Not saved: {error.message}
          </p>
        )}
        <p className="form-buttons">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="button primary" disabled={isSaving}>
            Save
          </button>
        </p>
      </form>
    </dialog>
  );
}

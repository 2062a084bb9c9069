/** The screen of a browser that the server does not know, over the page, which waits as it is. */

import { useMutation } from "@tanstack/react-query";
import { type SubmitEvent, useEffect, useRef } from "react";
import { signIn, useAccess } from "@/api/access";
import { describeFailure } from "@/design/problem";
import "./sign-in.css";

/** The screen, for as long as a request waits for the user to sign in. */
export function SignInWhereAsked() {
  return useAccess().isAsked ? <SignIn /> : null;
}

function SignIn() {
  const { problem } = useAccess();
  const attempt = useMutation({ mutationFn: signIn });
  const dialog = useRef<HTMLDialogElement>(null);
  // Escape closes every dialog sooner or later; this one would leave a page behind that waits.
  const show = () => dialog.current?.showModal();
  useEffect(show, []);

  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    attempt.mutate(String(new FormData(event.currentTarget).get("code")));
  };

  const shown = attempt.error ? describeFailure(attempt.error) : problem;
  return (
    <dialog ref={dialog} className="sign-in" aria-labelledby="sign-in-title" onClose={show}>
      <form className="sign-in-form" onSubmit={submit}>
        <h1 id="sign-in-title">Sign in to turnlog</h1>
        <p>
          This browser is not signed in. Run <code>turnlog open</code> on the machine that turnlog runs on.
        </p>
        <label className="sign-in-field">
          <span>
            Or paste the link that <code>turnlog open --print</code> prints
          </span>
          <input
            className="field"
            name="code"
            required
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            placeholder="http://…/#code=…"
          />
        </label>
        {shown && <p role="alert">{shown}</p>}
        <button type="submit" className="button primary" disabled={attempt.isPending}>
          Sign in
        </button>
      </form>
    </dialog>
  );
}

/** Asks before sessions are forgotten: shows what will go, as the server's dry run says. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { SessionItem } from "@/api/types";
import { FormDialog } from "@/design/form-dialog";
import { plural } from "@/format/numbers";
import { describePlans, forgetAll, keepersOf, planForgetting } from "./forgetting";
import { titleOf } from "./session-title";

interface ForgetDialogProps {
  sessions: SessionItem[];
  onClose: () => void;
  onForgotten: () => void;
}

const FORGET = { label: "Forget permanently", failed: "Not forgotten" };

export function ForgetDialog({ sessions, onClose, onForgotten }: ForgetDialogProps) {
  const queries = useQueryClient();
  const plans = useQuery({
    queryKey: ["forgetting", sessions.map(({ id }) => id)],
    queryFn: () => planForgetting(sessions),
    gcTime: 0,
  });
  const forget = useMutation({
    mutationFn: forgetAll,
    onSuccess: onForgotten,
    // Also after a failure: some of them may be gone.
    onSettled: () => queries.invalidateQueries({ queryKey: ["sessions"] }),
  });
  const keepers = plans.data ? keepersOf(plans.data) : 0;
  return (
    <FormDialog
      label={`Forget ${plural(sessions.length, "session")}`}
      onSave={() => plans.data && forget.mutate(plans.data)}
      onClose={onClose}
      isSaving={forget.isPending || !plans.data}
      action={FORGET}
      error={forget.error ?? plans.error}
    >
      <ul className="form-list" aria-label="Sessions to forget">
        {sessions.map((session) => (
          <li key={session.id}>{titleOf(session)}</li>
        ))}
      </ul>
      <p className="form-text" aria-live="polite">
        {plans.data ? `This will go: ${describePlans(plans.data)}.` : "Finding out what will go…"}
        {keepers > 0 &&
          ` Messages that ${plural(keepers, "other session")} ${keepers === 1 ? "shares" : "share"} stay there.`}
      </p>
      <p className="form-text">It cannot be undone, and no sync brings it back. The agent's own logs stay.</p>
    </FormDialog>
  );
}

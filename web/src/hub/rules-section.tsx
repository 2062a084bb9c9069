/** The rules of the team: owners change them, with a look at what a rule about age would forget. */

import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { getJson } from "@/api/client";
import { FormDialog } from "@/design/form-dialog";
import { describeFailure, Problem } from "@/design/problem";
import { plural } from "@/format/numbers";
import { formatExact } from "@/format/time";
import { AGREEMENT, RETENTION, RULES, TEAM } from "./paths";
import type { Me, Retention, Rules, RulesBody, TeamRules } from "./schema";
import type { SectionProps } from "./section";
import { useHubChange } from "./use-hub";

const LEVELS: Record<Rules["highest_level"], string> = {
  full: "Everything that machines send",
  redacted: "At most without secrets, images and log files (redacted)",
  metrics: "Numbers only (metrics)",
};

const VISIBILITIES: Record<Rules["visibility"], string> = {
  private: "Their owner only",
  team: "Everybody in the team, if their owner agrees",
};

const LONGEST = 36_500;

export function RulesSection({ me }: SectionProps) {
  const answer = useQuery({
    queryKey: [RULES],
    queryFn: ({ signal }) => getJson<TeamRules>(RULES, {}, signal),
  });
  if (answer.isError) return <Problem error={answer.error} what="The rules" />;
  if (!answer.data) return null;
  const { rules, agreed } = answer.data;
  return (
    <section className="team-section" aria-label="Rules">
      {rules.visibility === "team" && <Agreement agreed={agreed} />}
      {me.role === "owner" ? (
        <RulesForm key={JSON.stringify(rules)} rules={rules} me={me} />
      ) : (
        <dl className="team-rules">
          <dt>The hub takes</dt>
          <dd>{LEVELS[rules.highest_level]}</dd>
          <dt>New sessions are shown to</dt>
          <dd>{VISIBILITIES[rules.visibility]}</dd>
          <dt>Sessions are forgotten</dt>
          <dd>
            {rules.retention_days ? `after ${plural(rules.retention_days, "day")} without activity` : "never"}
          </dd>
          <dt>Smallest group in team figures</dt>
          <dd>{plural(me.team.smallest_group, "person", "people")}</dd>
        </dl>
      )}
    </section>
  );
}

/** A rule that shows more of somebody's sessions counts only once that person has agreed. */
function Agreement({ agreed }: { agreed: boolean }) {
  const change = useHubChange();
  const send = (agrees: boolean) => change.mutate({ method: "POST", path: AGREEMENT, body: { agrees } });
  return (
    <div className="team-notice" role="note">
      <p>
        The rule is to show new sessions to everybody in the team.{" "}
        {agreed ? "You agreed: yours are." : "Yours stay private until you agree."} Sessions that are there
        stay as they are, and you can make any of them private.
      </p>
      <button type="button" className="button" disabled={change.isPending} onClick={() => send(!agreed)}>
        {agreed ? "Do not show my new sessions" : "Show my new sessions to the team"}
      </button>
    </div>
  );
}

function RulesForm({ rules, me }: { rules: Rules; me: Me }) {
  const change = useHubChange();
  const [days, setDays] = useState(String(rules.retention_days ?? ""));
  const [asked, setAsked] = useState<RulesBody | null>(null);
  const plan = useRetention(days);
  const [group, setGroup] = useState(String(me.team.smallest_group));
  const save = (body: RulesBody) =>
    change.mutate(
      { method: "PATCH", path: RULES, body },
      {
        onSuccess: () => {
          setAsked(null);
          if (group !== String(me.team.smallest_group)) {
            change.mutate({ method: "PATCH", path: TEAM, body: { smallest_group: Number(group) } });
          }
        },
      },
    );
  return (
    <>
      <form
        className="team-rules-form"
        aria-label="Rules"
        onSubmit={(event) => {
          event.preventDefault();
          const form = new FormData(event.currentTarget);
          const body: RulesBody = {
            highest_level: form.get("highest_level") as Rules["highest_level"],
            visibility: form.get("visibility") as Rules["visibility"],
            retention_days: days ? Number(days) : null,
          };
          if (days && days !== String(rules.retention_days ?? "")) setAsked(body);
          else save(body);
        }}
      >
        <Choice label="The hub takes" name="highest_level" choices={LEVELS} value={rules.highest_level} />
        <Choice
          label="New sessions are shown to"
          name="visibility"
          choices={VISIBILITIES}
          value={rules.visibility}
        />
        <label>
          Forget sessions without activity for so many days
          <input
            className="field"
            type="number"
            min={1}
            max={LONGEST}
            value={days}
            placeholder="never"
            onChange={(event) => setDays(event.target.value)}
          />
        </label>
        <p className="team-note" role="status">
          {days ? describe(plan.data) : "Empty: sessions are kept, however old they are."}
        </p>
        <label>
          Fewest people that team figures show as a group of their own
          <input
            className="field"
            type="number"
            min={1}
            max={1000}
            required
            value={group}
            onChange={(event) => setGroup(event.target.value)}
          />
        </label>
        {change.error && !asked && (
          <p role="alert" className="team-problem">
            {describeFailure(change.error)}
          </p>
        )}
        <button type="submit" className="button primary" disabled={change.isPending}>
          Save the rules
        </button>
      </form>
      {asked && (
        <FormDialog
          label="Forget old sessions"
          onSave={() => save(asked)}
          onClose={() => setAsked(null)}
          isSaving={change.isPending || !plan.data}
          action={{ label: "Make it the rule", failed: "Not saved" }}
          error={change.error ?? plan.error}
        >
          <p className="form-text">{describe(plan.data)}</p>
          <p className="form-text">
            They are forgotten for good, with large contents and log files, and so is what becomes as old
            later. What is on people's machines stays there.
          </p>
        </FormDialog>
      )}
    </>
  );
}

/** What a rule of so many days would forget now. */
function useRetention(days: string) {
  return useQuery({
    queryKey: [RETENTION, days],
    queryFn: ({ signal }) => getJson<Retention>(RETENTION, { days }, signal),
    enabled: Number(days) >= 1 && Number(days) <= LONGEST,
    placeholderData: keepPreviousData,
  });
}

function describe(plan: Retention | undefined): string {
  if (!plan) return "Finding out what it would forget…";
  if (plan.sessions === 0) return "It would forget nothing now.";
  const oldest = plan.oldest ? `, the oldest of ${formatExact(plan.oldest)}` : "";
  return `It would forget ${plural(plan.sessions, "session")} of ${plural(plan.people, "person", "people")} now${oldest}.`;
}

interface ChoiceProps {
  label: string;
  name: string;
  choices: Record<string, string>;
  value: string;
}

function Choice({ label, name, choices, value }: ChoiceProps) {
  return (
    <label>
      {label}
      <select className="field" name={name} defaultValue={value}>
        {Object.entries(choices).map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

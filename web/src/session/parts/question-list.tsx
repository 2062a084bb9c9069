/** What the user was asked, and between what they could choose. */

import type { Question } from "./tool-questions";
import "./question-list.css";

export function QuestionList({ questions, answer }: { questions: Question[]; answer: string }) {
  return (
    <dl className="questions">
      {questions.map((question, index) => (
        <div key={index}>
          <dt>{question.text}</dt>
          {question.choices.map((choice) => (
            <dd
              key={choice.label}
              className={isChosen(answer, question, choice.label) ? "chosen" : undefined}
            >
              <span className="question-choice">{choice.label}</span>
              {choice.description && <span className="question-note">{choice.description}</span>}
            </dd>
          ))}
        </div>
      ))}
    </dl>
  );
}

/** Agents tell the model `"Which colour?"="Red"`, or give the words alone. */
function isChosen(answer: string, question: Question, label: string): boolean {
  return answer.includes(`"${question.text}"="${label}"`) || answer.trim() === label;
}

/** What a searching tool found: files, and the lines in them. */

import { useSessionContext } from "../session-context";
import type { SearchOutput } from "./search-hits";
import { relativeTo } from "./tool-summary";
import "./found-files.css";

export function FoundFiles({ found }: { found: SearchOutput }) {
  const { cwd } = useSessionContext();
  return (
    <div className="output found" tabIndex={0}>
      {found.remarks.map((remark) => (
        <p key={remark} className="found-remark">
          {remark}
        </p>
      ))}
      {found.files.map((file, index) => (
        <section key={index}>
          <p className="found-path">{relativeTo(cwd, file.path)}</p>
          {file.hits.length > 0 && (
            <ol>
              {file.hits.map((hit, place) => (
                <li key={place} className={hit.context ? "found-context" : undefined}>
                  <span className="found-line">{hit.line}</span>
                  <code>{hit.text}</code>
                </li>
              ))}
            </ol>
          )}
        </section>
      ))}
    </div>
  );
}

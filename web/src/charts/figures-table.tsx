/** A table of figures: the first column names a row, all others are numbers. Long ones show their beginning first. */

import { type ReactNode, useState } from "react";
import { formatCount, UNKNOWN } from "@/format/numbers";

/** Rows that are shown before all are asked for. */
const FIRST = 12;

export interface FiguresRow {
  key: string;
  cells: ReactNode[];
}

interface FiguresTableProps {
  columns: string[];
  rows: FiguresRow[];
  /** How many rows there are, if these are only the first. */
  found?: number;
}

export function FiguresTable({ columns, rows, found = rows.length }: FiguresTableProps) {
  const [isWhole, setIsWhole] = useState(false);
  const shown = isWhole ? rows : rows.slice(0, FIRST);
  return (
    <>
      <div className="usage-table" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th scope="col" key={column}>
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ key, cells: [name, ...figures] }) => (
              <tr key={key}>
                <th scope="row">{name}</th>
                {figures.map((figure, index) => (
                  <td key={columns[index + 1]} className={figure === UNKNOWN ? "unknown" : undefined}>
                    {figure}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > shown.length && (
        <button type="button" className="button figures-more" onClick={() => setIsWhole(true)}>
          {found > rows.length
            ? `Show ${rows.length} of ${formatCount(found)}`
            : `Show all ${formatCount(rows.length)}`}
        </button>
      )}
    </>
  );
}

/** A table of figures: the first column names a row, all others are numbers. Long ones show their beginning first. */

import { type ReactNode, useState } from "react";
import { Icon } from "@/design/icon";
import { formatCount, UNKNOWN } from "@/format/numbers";

/** Rows that are shown before all are asked for. */
const FIRST = 12;

export interface FiguresRow {
  key: string;
  cells: ReactNode[];
  /** Its figures as numbers, if readers sort the table by them; null is unknown. */
  values?: (number | null)[];
}

/** What a table is sorted by, as the address has it: a column in small letters, and "ascending" for smallest first. */
export interface Sorting {
  sort: string;
  order: string;
}

export interface SortedTable {
  sorting: Sorting;
  onSort: (sorting: Sorting) => void;
}

interface FiguresTableProps {
  columns: string[];
  rows: FiguresRow[];
  /** How many rows there are, if these are only the first. */
  found?: number;
  /** Lets readers sort the rows by their figures; at first they are sorted by the column `first`. */
  sorted?: SortedTable & { first: string };
}

export function FiguresTable({ columns, rows, found = rows.length, sorted }: FiguresTableProps) {
  const [isWhole, setIsWhole] = useState(false);
  const by = sorted && sortedColumn(columns, sorted);
  const isAscending = sorted?.sorting.order === "ascending";
  const ordered = by ? sortRows(rows, columns.indexOf(by) - 1, isAscending) : rows;
  const shown = isWhole ? ordered : ordered.slice(0, FIRST);
  return (
    <>
      <div className="usage-table" tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map((column, index) =>
                sorted && index > 0 ? (
                  <SortingHead
                    key={column}
                    column={column}
                    direction={column !== by ? undefined : isAscending ? "ascending" : "descending"}
                    onSort={(order) =>
                      sorted.onSort({ sort: column === sorted.first ? "" : column.toLowerCase(), order })
                    }
                  />
                ) : (
                  <th scope="col" key={column}>
                    {column}
                  </th>
                ),
              )}
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

function sortedColumn(columns: string[], { sorting, first }: SortedTable & { first: string }): string {
  return columns.slice(1).find((column) => column.toLowerCase() === sorting.sort) ?? first;
}

/** Rows by one of their figures. What is unknown comes last in both directions; equal rows stay as they are. */
function sortRows(rows: FiguresRow[], figure: number, isAscending: boolean): FiguresRow[] {
  const sign = isAscending ? 1 : -1;
  return rows.toSorted(({ values: one }, { values: other }) => {
    const [a, b] = [one?.[figure] ?? null, other?.[figure] ?? null];
    return a === null || b === null ? Number(a === null) - Number(b === null) : sign * (a - b);
  });
}

interface SortingHeadProps {
  column: string;
  /** Undefined if the rows are sorted by another column. */
  direction: "ascending" | "descending" | undefined;
  onSort: (order: string) => void;
}

/** The head of a column that sorts the table: largest first, and the other way round when pressed again. */
function SortingHead({ column, direction, onSort }: SortingHeadProps) {
  return (
    <th scope="col" aria-sort={direction}>
      <button
        type="button"
        className="figures-sort"
        onClick={() => onSort(direction === "descending" ? "ascending" : "")}
      >
        {direction && <Icon name={direction === "descending" ? "down" : "up"} />}
        {column}
      </button>
    </th>
  );
}

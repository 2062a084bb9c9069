/** What every filter by one value takes; "" is no filter. */
export interface FilterProps {
  value: string;
  onChange: (value: string) => void;
}

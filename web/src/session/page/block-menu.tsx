/** Chooses which kinds of blocks are shown. */

import { Menu, MenuSection } from "@/design/menu";
import { BLOCKS, type Hidden, isSame, NOTHING_HIDDEN, PROMPTS_AND_ANSWERS, toggled } from "@/session/blocks";

const VIEWS: { label: string; hidden: Hidden }[] = [
  { label: "Everything", hidden: NOTHING_HIDDEN },
  { label: "Prompts and answers", hidden: PROMPTS_AND_ANSWERS },
];

interface BlockMenuProps {
  hidden: Hidden;
  onChange: (hidden: Hidden) => void;
}

export function BlockMenu({ hidden, onChange }: BlockMenuProps) {
  const view = VIEWS.find((each) => isSame(each.hidden, hidden));
  return (
    <Menu label={view?.label ?? "Some blocks"} icon="filter" title="Choose what is shown">
      <MenuSection title="Show">
        {VIEWS.map(({ label, hidden: wanted }) => (
          <label key={label} className="menu-item">
            <input
              type="radio"
              name="blocks"
              checked={isSame(wanted, hidden)}
              onChange={() => onChange(wanted)}
            />
            {label}
          </label>
        ))}
      </MenuSection>
      <MenuSection title="Kinds of blocks">
        {BLOCKS.map(({ block, label }) => (
          <label key={block} className="menu-item">
            <input
              type="checkbox"
              checked={!hidden.has(block)}
              onChange={() => onChange(toggled(hidden, block))}
            />
            {label}
          </label>
        ))}
      </MenuSection>
    </Menu>
  );
}

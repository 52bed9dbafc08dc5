/** Filters that hold, each as a chip that is changed by a click and taken away by its cross. */
import type { ComponentChildren } from 'preact'
import { Popover } from './popover.tsx'
import { visibleText } from './visible-text.ts'

export interface Chip {
  readonly name: string
  /** The filter: `Customer`. */
  readonly label: string
  /** The wanted value: `Acme`. */
  readonly text: string
}

interface ChipsProps {
  readonly chips: readonly Chip[]
  readonly onRemove: (chip: Chip) => void
  /** The form that changes a chip. */
  readonly edit: (chip: Chip, close: () => void) => ComponentChildren
  /** Stands before the chips; `children` after them. */
  readonly before?: ComponentChildren
  readonly children?: ComponentChildren
}

/** Characters of a chip; all of them are in its tooltip. */
const MAX_TEXT = 60

export const Chips = ({ chips, onRemove, edit, before, children }: ChipsProps) => (
  <div class="chips" role="group" aria-label="Filters">
    {before}
    {chips.map((chip) => (
      <span class="chip" key={chip.name} title={`${chip.label}: ${visibleText(chip.text)}`}>
        <Popover
          text={
            <>
              {chip.label}: <bdi>{visibleText(chip.text, MAX_TEXT)}</bdi>
            </>
          }
          title={`Change the filter ${chip.label}`}
        >
          {(close) => edit(chip, close)}
        </Popover>
        <button
          type="button"
          aria-label={`Remove the filter ${chip.label}`}
          onClick={() => onRemove(chip)}
        >
          ✕
        </button>
      </span>
    ))}
    {children}
  </div>
)

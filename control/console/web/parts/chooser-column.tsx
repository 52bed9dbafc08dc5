/**
 * The boxes by which rows of a table are chosen. Space turns one, with Shift all up to it; arrows
 * go to the next box, with Shift they choose it; Ctrl-A chooses all shown rows, Escape none.
 */
import type { ChosenRows } from './chosen-rows.ts'
import type { RowKey } from './row-keys.ts'
import { visibleText } from './visible-text.ts'

interface ChooserOptions<Row> {
  readonly chosen: ChosenRows
  /** The rows that are shown, in their order. */
  readonly shown: readonly Row[]
  readonly keyOf: (row: Row) => RowKey
  readonly nameOf: (row: Row) => string
  readonly label: string
}

export function chooserColumn<Row>(options: ChooserOptions<Row>) {
  const { chosen, shown, keyOf, nameOf, label } = options
  const { value: keys } = chosen.keys
  const isAny = shown.some((row) => keys.has(keyOf(row)))
  const isAll = isAny && shown.every((row) => keys.has(keyOf(row)))
  const all = () => shown.map(keyOf)
  return {
    name: 'chosen',
    title: 'Select',
    isChooser: true,
    value: (): null => null,
    head: (
      <label>
        <input
          type="checkbox"
          aria-label={`Select all of ${label}`}
          checked={isAll}
          // Some are chosen, and not all.
          ref={(box) => {
            if (box !== null) box.indeterminate = isAny && !isAll
          }}
          disabled={shown.length === 0}
          onClick={() => chosen.turnAll(all())}
          onKeyDown={(event) => onKey(event, chosen, all)}
        />
      </label>
    ),
    show: (row: Row) => (
      <label>
        <input
          type="checkbox"
          aria-label={`Select ${visibleText(nameOf(row), 80)}`}
          checked={keys.has(keyOf(row))}
          onClick={({ shiftKey }) => chosen.turn(keyOf(row), all(), shiftKey)}
          onKeyDown={(event) => onKey(event, chosen, all)}
        />
      </label>
    ),
  }
}

function onKey(event: KeyboardEvent, chosen: ChosenRows, all: () => readonly RowKey[]): void {
  const box = event.currentTarget
  if (!(box instanceof HTMLInputElement) || event.altKey) return
  const { key } = event
  if (key === 'ArrowDown' || key === 'ArrowUp') {
    event.preventDefault()
    const next = nextBox(box, key === 'ArrowDown')
    next?.focus()
    if (event.shiftKey && next !== undefined && !next.checked) next.click()
  } else if (key === 'a' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault()
    chosen.choose([...chosen.keys.peek(), ...all()])
  } else if (key === 'Escape') {
    event.preventDefault()
    chosen.choose([])
  }
}

function nextBox(box: HTMLInputElement, isDown: boolean): HTMLInputElement | undefined {
  const boxes = [
    ...(box.closest('table')?.querySelectorAll<HTMLInputElement>('.chooser input') ?? []),
  ]
  return boxes[boxes.indexOf(box) + (isDown ? 1 : -1)]
}

/** Which columns of a table are shown: chosen by the user, and remembered by this browser. */
import { signal } from '@preact/signals'
import { session } from '../api/session.ts'
import { Popover } from './popover.tsx'
import { address, setQuery } from './router.ts'

interface Choosable {
  readonly name: string
  readonly title: string
}

/** Counts the changes, so that tables follow them. */
const changes = signal(0)

const placeOf = (table: string): string | undefined =>
  session.value.kind === 'signed-in'
    ? `tollgate-columns-${table}-${session.value.user.id}`
    : undefined

function remembered(table: string): string | null {
  const place = placeOf(table)
  try {
    return place === undefined ? null : localStorage.getItem(place)
  } catch {
    return null
  }
}

function remember(table: string, names: string | undefined): void {
  const place = placeOf(table)
  if (place === undefined) return
  try {
    if (names === undefined) localStorage.removeItem(place)
    else localStorage.setItem(place, names)
  } catch {
    // A browser that keeps nothing shows them until the page is left.
  }
  changes.value += 1
}

/** Names of columns: those of the address, as saved views have them; else those chosen last. */
export function chosenColumns(table: string, usual: readonly string[]): ReadonlySet<string> {
  void changes.value
  const names = (address.value.query['columns'] ?? remembered(table) ?? '').split(',')
  return new Set(names.some(Boolean) ? names : usual)
}

interface ColumnsChoiceProps {
  readonly table: string
  readonly columns: readonly Choosable[]
  readonly usual: readonly string[]
}

export function ColumnsChoice({ table, columns, usual }: ColumnsChoiceProps) {
  const chosen = chosenColumns(table, usual)
  const choose = (names: readonly string[]): void => {
    const text = names.join(',')
    remember(table, text === usual.join(',') ? undefined : text)
    if (address.value.query['columns'] !== undefined) setQuery({ columns: text })
  }
  const toggle = (name: string, isShown: boolean): void => {
    const names = columns
      .map((column) => column.name)
      .filter((each) => (each === name ? isShown : chosen.has(each)))
    // A table has a column.
    if (names.length > 0) choose(names)
  }
  return (
    <Popover text="Columns" title="Columns">
      {() => (
        <div class="stack">
          <div class="stack halved">
            {columns.map(({ name, title }) => (
              <label key={name} class="flag">
                <input
                  type="checkbox"
                  checked={chosen.has(name)}
                  onChange={(event) => toggle(name, event.currentTarget.checked)}
                />
                {title}
              </label>
            ))}
          </div>
          <button type="button" onClick={() => choose(usual)}>
            As usual
          </button>
        </div>
      )}
    </Popover>
  )
}

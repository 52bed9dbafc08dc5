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

/** The same for this page: a browser may keep nothing. */
const ofPage = new Map<string, string>()

function remembered(table: string): string | undefined {
  const place = placeOf(table)
  if (place === undefined) return undefined
  const chosen = ofPage.get(place)
  if (chosen !== undefined) return chosen
  try {
    return localStorage.getItem(place) ?? undefined
  } catch {
    return undefined
  }
}

/** `''`: the usual ones. */
function remember(table: string, names: string): void {
  const place = placeOf(table)
  if (place === undefined) return
  ofPage.set(place, names)
  changes.value += 1
  try {
    localStorage.setItem(place, names)
  } catch {
    // It refuses, or has no room.
  }
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
    remember(table, text === usual.join(',') ? '' : text)
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

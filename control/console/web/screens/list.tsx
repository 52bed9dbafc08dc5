/** What the screens of administration share: a list with actions, dialogs one at a time, texts that are shown once. */
import { useSignal, type Signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { get } from '../api/api.ts'
import { useResource, type Resource } from '../parts/resource.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { visibleText } from '../parts/visible-text.ts'

const REFRESH_MS = 10_000

export interface List<Row> extends Resource<readonly Row[]> {
  /** The dialog that is open. */
  readonly dialog: Signal<ComponentChildren>
  /** A secret that the server tells only now. */
  readonly secret: Signal<string | undefined>
  /** Closes the dialog, and loads the rows again. */
  readonly close: () => void
}

export function useList<Row>(path: string, events?: RegExp): List<Row> {
  const options = { everyMs: REFRESH_MS, ...(events !== undefined && { events }) }
  const resource = useResource(path, () => get<readonly Row[]>(path), options)
  const dialog = useSignal<ComponentChildren>(undefined)
  const secret = useSignal<string | undefined>(undefined)
  const close = () => {
    dialog.value = undefined
    resource.reload()
  }
  return { ...resource, dialog, secret, close }
}

export interface Action {
  readonly text: string
  readonly open: () => void
}

/** Its buttons say on what they act, for screen readers. */
export const actionsColumn = <Row,>(
  nameOf: (row: Row) => string,
  actionsOf: (row: Row) => readonly Action[],
): ShownColumn<Row> => ({
  name: 'actions',
  title: 'Actions',
  value: () => null,
  show: (row) => (
    <span class="buttons">
      {actionsOf(row).map(({ text, open }) => (
        <button
          key={text}
          type="button"
          onClick={open}
          aria-label={`${text} ${visibleText(nameOf(row), 60)}`}
        >
          {text}
        </button>
      ))}
    </span>
  ),
})

export function ShownOnce({ what, secret }: { what: string; secret: Signal<string | undefined> }) {
  if (secret.value === undefined) return null
  return (
    <p class="notice" role="status">
      {what}, shown only now: <code class="token">{secret.value}</code>{' '}
      <button type="button" onClick={() => (secret.value = undefined)}>
        Done
      </button>
    </p>
  )
}

export function Choice({
  name,
  value,
  options,
}: {
  name: string
  value: string
  options: Readonly<Record<string, string>>
}) {
  return (
    <select name={name}>
      {Object.entries(options).map(([each, text]) => (
        <option key={each} value={each} selected={each === value}>
          {text}
        </option>
      ))}
    </select>
  )
}

/** Each word means itself. */
export const words = (...all: readonly string[]): Readonly<Record<string, string>> =>
  Object.fromEntries(all.map((word) => [word, word]))

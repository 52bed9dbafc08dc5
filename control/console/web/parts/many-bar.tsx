/** The actions on the chosen rows of a list: they lie over the headings, so that nothing moves. */
import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { ChosenRows } from './chosen-rows.ts'
import { figureText } from './format.ts'
import { later } from './later.tsx'
import type { ManyAction, ManyRows } from './many-action.ts'
import { MAX_CHOSEN, type RowKey } from './row-keys.ts'
import { csvOf } from './rows-csv.ts'

interface ManyBarProps<Row extends object> {
  readonly of: ManyRows<Row>
  readonly rows: readonly Row[]
  readonly chosen: ChosenRows
  readonly keyOf: (row: Row) => RowKey
  readonly nameOf: (row: Row) => string
  readonly isWritable: boolean
  readonly onDone: () => void
}

const ManyDialog = later(() => import('./editing.ts').then((loaded) => loaded.ManyDialog), null)

interface Asked {
  readonly action: ManyAction<object>
  readonly rows: readonly object[]
  readonly spared: ReadonlyMap<object, string>
}

export function ManyBar<Row extends object>(props: ManyBarProps<Row>) {
  const { of, rows, chosen, keyOf, nameOf, isWritable, onDone } = props
  const bar = useRef<HTMLDivElement>(null)
  const asked = useSignal<Asked | undefined>(undefined)
  const isBusy = useSignal(false)
  const { value: keys } = chosen.keys
  const picked = rows.filter((row) => keys.has(keyOf(row)))
  const isNone = picked.length === 0
  const ask = async (action: ManyAction<Row>): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    const spared =
      (await action.spared?.(picked).finally(() => (isBusy.value = false))) ?? new Map()
    isBusy.value = false
    asked.value = { action: action as unknown as ManyAction<object>, rows: picked, spared }
  }
  const close = (left: readonly object[]): void => {
    asked.value = undefined
    chosen.choose((left as readonly Row[]).map(keyOf))
    onDone()
  }
  const clear = (): void => {
    chosen.choose([])
    bar.current?.parentElement?.querySelector<HTMLInputElement>('th.chooser input')?.focus()
  }
  return (
    <>
      <div
        ref={bar}
        class={isNone ? 'many-bar none' : 'many-bar'}
        role="group"
        aria-label={`Selected ${of.many}`}
      >
        <strong role="status">
          {!isNone && `${figureText(picked.length)} selected`}
          {picked.length === MAX_CHOSEN && ', the most at once'}
        </strong>
        {isWritable &&
          of.actions.map((action) => (
            <button
              key={action.text}
              type="button"
              class={action.isDangerous === true ? 'danger' : undefined}
              onClick={() => void ask(action)}
            >
              {action.text}
            </button>
          ))}
        <button type="button" onClick={() => save(`${of.many.replaceAll(' ', '-')}.csv`, picked)}>
          Export
        </button>
        <button type="button" aria-label="Clear the selection" onClick={clear}>
          ✕
        </button>
      </div>
      {asked.value !== undefined && (
        <ManyDialog
          {...asked.value}
          of={of}
          nameOf={nameOf as (row: object) => string}
          onClose={close}
        />
      )}
    </>
  )
}

/** Gives a file to the browser. */
function save(name: string, rows: readonly object[]): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([csvOf(rows)], { type: 'text/csv' }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}

/** The decks of a plan that were imported, newest first: the newest one can be undone. */
import { getRows, send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { StoredDeck } from '../api/views.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { plural } from '../parts/format.ts'
import { List, type Action } from '../parts/list.tsx'
import { useResource } from '../parts/resource.ts'

/** As many as are kept of a plan. */
const SHOWN = 20

export const useDecks = (planId: number) =>
  useResource(`decks of ${planId}`, () =>
    getRows<StoredDeck>(`/rates/decks?rate_plan_id=${planId}&limit=${SHOWN}`),
  )

interface DecksProps {
  readonly decks: ReturnType<typeof useDecks>
  /** The rates of the plan have changed. */
  readonly onUndo: () => void
}

/** Nothing, while there is none. */
export function Decks({ decks: { data, problem, reload }, onUndo }: DecksProps) {
  const rows = data.value?.rows ?? []
  if (rows.length === 0) return null
  const newest = rows.find((deck) => deck.undone_at === null)
  const undo = (deck: StoredDeck): Action => ({
    text: 'Undo',
    title: 'Undo this deck?',
    confirm: 'Undo',
    isDangerous: true,
    isDisabled: deck.id !== newest?.id,
    ask: (
      <p>
        The plan becomes what it was before {nameOf(deck)}, unless its rates have changed since.
      </p>
    ),
    onConfirm: (_form, _onSecret, onAnswer) => undone(deck, onAnswer),
  })
  return (
    <details>
      <summary>Imported decks</summary>
      <List<StoredDeck>
        label="Imported decks"
        rows={rows}
        columns={columns}
        keyOf={({ id }) => id}
        empty="No deck was imported."
        problem={problem.value}
        reload={() => {
          reload()
          onUndo()
        }}
        isPart
        isWritable={may('rates:write')}
        nameOf={nameOf}
        actions={(deck) => [undo(deck)]}
      />
    </details>
  )
}

async function undone({ id }: StoredDeck, onAnswer: (text: string) => void) {
  const answer = await send<{ readonly restored: number }>('POST', `/rates/decks/${id}/undo`)
  if (answer.kind === 'ok') onAnswer(`Undone: ${plural(answer.data.restored, 'rate')} as before.`)
  return answer
}

const nameOf = ({ id, file_name }: StoredDeck): string => file_name || `deck ${id}`

const stateOf = ({ undone_at }: StoredDeck): string => (undone_at === null ? 'imported' : 'undone')

const columns = [
  textColumn<StoredDeck>('file', 'File', nameOf),
  momentColumn<StoredDeck>('imported', 'Imported', ({ imported_at }) => imported_at),
  textColumn<StoredDeck>('by', 'By', ({ imported_by }) => imported_by, { isMinor: true }),
  textColumn<StoredDeck>('state', 'Status', stateOf),
  figureColumn<StoredDeck>('prefixes', 'Prefixes', ({ prefixes }) => prefixes),
  figureColumn<StoredDeck>('created', 'New', ({ created }) => created),
  figureColumn<StoredDeck>('updated', 'Changed', ({ updated }) => updated),
  figureColumn<StoredDeck>('removed', 'Removed', ({ removed }) => removed),
]

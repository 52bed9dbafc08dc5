/** The jobs that have priced calls of a plan anew, newest first, each with its undo. */
import { useRef } from 'preact/hooks'
import { getRows, type ListedRows, send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Rerating, ReratingDetail } from '../api/views.ts'
import { figureColumn, moneyColumn, textColumn } from '../parts/columns.tsx'
import { figureText, momentText, plural, type Tone } from '../parts/format.ts'
import { List, Loaded, type Action } from '../parts/list.tsx'
import { type Resource, useResource, useView } from '../parts/resource.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Differences } from './rerating.tsx'

const SHOWN = 20

const isOpen = ({ state }: Rerating): boolean => state !== 'done' && state !== 'undone'

export function useReratings(planId: number): Found {
  const found: Found = useResource(
    `reratings of ${planId}`,
    () => getRows<Rerating>(`/rates/reratings?rate_plan_id=${planId}&limit=${SHOWN}`),
    { everyMs: () => (found.data.peek()?.rows.some(isOpen) === true ? 1_000 : 10_000) },
  )
  return found
}

type Found = Resource<ListedRows<Rerating>>

interface ReratingsProps {
  readonly jobs: Found
  /** The viewer has begun one. */
  readonly isBegun: boolean
}

/** Nothing, while there is none. */
export function Reratings({ jobs: { data, problem, reload }, isBegun }: ReratingsProps) {
  const isUnfolded = useRef(false)
  const rows = data.value?.rows ?? []
  isUnfolded.current ||= isBegun || rows.some(isOpen)
  if (rows.length === 0) return null
  return (
    <details open={isUnfolded.current}>
      <summary>Re-rated calls</summary>
      <List<Rerating>
        label="Re-rated calls"
        rows={rows}
        columns={columns}
        keyOf={({ id }) => id}
        empty="No call was priced anew."
        problem={problem.value}
        reload={reload}
        isPart
        isWritable={may('rates:write')}
        nameOf={({ id }) => `re-rating ${id}`}
        actions={(job) => (job.kind === 'bought' || may('wallets:write') ? [undo(job)] : [])}
      />
    </details>
  )
}

const undo = (job: Rerating): Action => ({
  text: 'Undo',
  title: `Undo re-rating ${job.id}?`,
  confirm: 'Undo',
  isDangerous: true,
  isDisabled: job.state !== 'done',
  ask: (
    <>
      <p>
        {plural(job.changed, 'call')} {job.changed === 1 ? 'gets its' : 'get their'} earlier{' '}
        {job.changed === 1 ? 'price' : 'prices'} back
        {job.kind === 'sold' && ', and wallets the difference'}. Records that were changed since
        stay as they are.
      </p>
      <Posted id={job.id} />
    </>
  ),
  onConfirm: () => send('POST', `/rates/reratings/${job.id}/undo`),
})

/** Customers of a job, with what each got or owes. */
function Posted({ id }: { id: number }) {
  const found = useView<ReratingDetail>(`/rates/reratings/${id}`)
  return (
    <Loaded of={found}>
      {({ customers, kind }) => <Differences rows={customers} hasPosted={kind === 'sold'} />}
    </Loaded>
  )
}

const stateWords: Readonly<Record<Rerating['state'], string>> = {
  rating: 'prices calls',
  posting: 'corrects wallets',
  done: 'done',
  undoing: 'restores prices',
  returning: 'corrects wallets back',
  undone: 'undone',
}

const tones: Readonly<Partial<Record<Rerating['state'], Tone>>> = { done: 'good', undone: 'plain' }

function stateText({ state, done, total, kept }: Rerating): string {
  if (state === 'rating')
    return `${stateWords.rating}: ${figureText(done, 0)} of ${figureText(total, 0)}`
  const left = kept > 0 ? `, ${figureText(kept, 0)} changed since` : ''
  return stateWords[state] + (state === 'undone' ? left : '')
}

/** Which calls are meant. */
const meantText = ({ kind, prefix, prices }: Rerating): string =>
  [
    kind === 'sold' ? 'what customers paid' : 'what carriers take',
    ...(prefix === '' ? [] : [`to ${prefix}…`]),
    ...(prices === 'now' ? ['by prices of now'] : []),
  ].join(', ')

const columns: readonly ShownColumn<Rerating>[] = [
  figureColumn('id', 'Number', ({ id }) => id, { show: ({ id }) => `${id}` }),
  textColumn('state', 'Status', stateText, { tone: ({ state }) => tones[state] ?? 'warn' }),
  textColumn('meant', 'Priced anew', meantText),
  textColumn('period', 'Calls of', ({ from, to }) => `${momentText(from)} to ${momentText(to)}`, {
    isMinor: true,
    max: 80,
  }),
  figureColumn('changed', 'Changed', ({ changed }) => changed),
  moneyColumn('difference', 'Difference', ({ difference_exact: amount, currency }) => ({
    amount,
    currency,
  })),
  textColumn('by', 'By', (row) => row.started_by, { isMinor: true }),
]

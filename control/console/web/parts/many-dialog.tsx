/**
 * Asks before something is done with many rows, does it one after the other, and says of each that
 * was refused why. What was done before somebody stops it stays, and can be undone.
 */
import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ConsoleAnswer, EditConflict } from '../api/api.ts'
import { Dialog } from './dialog.tsx'
import { figureText } from './format.ts'
import type { ManyAction, ManyRows } from './many-action.ts'
import { paced } from './paced.ts'
import { Text } from './text.tsx'
import { tellLot } from './toast.tsx'

interface ManyDialogProps {
  readonly of: Pick<ManyRows<object>, 'one' | 'many'>
  readonly action: ManyAction<object>
  readonly rows: readonly object[]
  readonly spared: ReadonlyMap<object, string>
  readonly nameOf: (row: object) => string
  /** `left`: the rows that it was not done to. */
  readonly onClose: (left: readonly object[]) => void
}

/** Names in a sentence, and rows in a list. */
const SHOWN_NAMES = 12
const SHOWN_ROWS = 50

interface Refused {
  readonly row: object
  readonly why: string
}

export function ManyDialog({ of, action, rows, spared, nameOf, onClose }: ManyDialogProps) {
  const wanted = rows.filter((row) => !spared.has(row))
  const run = useRun({ of, action, rows: wanted })
  const { refused, done, isRunning, isTried } = run
  const tried = done.value.size + refused.value.length
  const isEmpty = wanted.length === 0
  const count = countText(wanted.length, of)
  const left = [...spared].map(([row, why]) => ({ row, why }))
  return (
    <Dialog
      title={isEmpty ? `Nothing to ${action.text.toLowerCase()}` : `${action.text} ${count}?`}
      action={isEmpty ? 'Done' : isTried.value ? 'Try again' : action.text}
      isDangerous={action.isDangerous === true && !isEmpty}
      onConfirm={(form) => (isEmpty ? Promise.resolve(nothing) : run.go(form))}
      // Nothing was done: all stay chosen.
      onClose={() =>
        void run.end().then((open) => onClose(open.length === wanted.length ? rows : open))
      }
    >
      {!isEmpty && (
        <p>
          <strong>
            <Names of={wanted.map(nameOf)} />
          </strong>
          : {action.effect}
        </p>
      )}
      {left.length > 0 && (
        <div class="notice">
          <p>{stayText(left.length, of)}</p>
          <Reasons of={left} nameOf={nameOf} />
        </div>
      )}
      {action.fields}
      {!isEmpty && (
        <p class="progress">
          <progress aria-label={`${action.text} ${count}`} max={wanted.length} value={tried} />{' '}
          {isRunning.value
            ? `${figureText(tried)} of ${figureText(wanted.length)}${waitText(run.waitMs.value)}`
            : `One after the other; “Cancel” stops it.`}
        </p>
      )}
      {isTried.value && (
        <div class="problem" role="alert">
          <p>
            {done.value.size > 0 && `${areText(done.value.size, of)} ${action.done}. `}
            {`${areText(refused.value.length, of)} not:`}
          </p>
          <Reasons of={refused.value} nameOf={nameOf} />
        </div>
      )}
    </Dialog>
  )
}

const nothing: ConsoleAnswer<unknown> = { kind: 'ok', data: undefined, meta: undefined }

interface RunOptions extends Pick<ManyDialogProps, 'of' | 'action' | 'rows'> {}

function useRun({ of, action, rows }: RunOptions) {
  const done = useSignal<ReadonlySet<object>>(new Set())
  const refused = useSignal<readonly Refused[]>([])
  const isRunning = useSignal(false)
  const isTried = useSignal(false)
  const waitMs = useSignal(0)
  const changes = useRef<string[]>([])
  const isStopped = useRef(false)
  const running = useRef<Promise<unknown>>(Promise.resolve())
  /** Versions with changes of others that were shown: the next attempt is over them. */
  const seen = useRef(new Map<object, string>())

  const one = async (row: object, form: FormData): Promise<ConsoleAnswer<unknown>> => {
    const answer = await action.send(row, form, seen.current.get(row))
    if (answer.kind === 'ok') {
      if (answer.changeId !== undefined) changes.current.push(answer.changeId)
      done.value = new Set([...done.value, row])
    } else if (answer.kind === 'failed' && answer.retryAfterMs === undefined) {
      const { conflict } = answer
      if (conflict !== undefined) seen.current.set(row, conflict.etag)
      const why =
        conflict === undefined ? (answer.headline ?? answer.message) : changedText(conflict)
      refused.value = [...refused.value, { row, why }]
    }
    return answer
  }
  const all = async (form: FormData): Promise<ConsoleAnswer<unknown> | { kind: 'open' }> => {
    refused.value = []
    isTried.value = false
    isRunning.value = true
    const open = rows.filter((row) => !done.value.has(row))
    const answers = await paced(open, (row) => one(row, form), {
      isStopped: () => isStopped.current,
      onProgress: () => undefined,
      onWait: (ms) => (waitMs.value = ms),
    })
    isRunning.value = false
    const last = [...answers.values()].at(-1)
    if (last?.kind === 'signed-out') return last
    // Those that the API has no time for stay, too.
    const known = new Set(refused.value.map(({ row }) => row))
    const late = open.filter((row) => !done.value.has(row) && !known.has(row))
    refused.value = [...refused.value, ...late.map((row) => ({ row, why: NO_ROOM }))]
    if (refused.value.length === 0) return nothing
    isTried.value = true
    return { kind: 'open' }
  }
  /** The request that is under way ends first. Returns the rows that are as they were. */
  const end = async (): Promise<readonly object[]> => {
    const isTold = isStopped.current
    isStopped.current = true
    await running.current
    if (!isTold && done.value.size > 0)
      void tellLot(`${areText(done.value.size, of)} ${action.done}.`, changes.current)
    return rows.filter((row) => !done.value.has(row))
  }
  // It goes with its screen: nobody could see, or stop, what went on.
  useEffect(() => () => void end(), [])
  return {
    done,
    refused,
    isRunning,
    isTried,
    waitMs,
    go: (form: FormData) => {
      const run = all(form)
      running.current = run
      return run
    },
    end,
  }
}

/** The API takes so many requests of a user in a minute. */
const waitText = (ms: number): string =>
  ms === 0 ? '' : `; the server takes no more for now, it goes on in ${Math.ceil(ms / 1_000)} s`

const NO_ROOM = 'not done: the server takes no more requests for now'

/** Says how others have changed it since it was chosen. */
const changedText = ({ fields }: EditConflict): string =>
  `somebody has changed it meanwhile (${fields
    .map(({ label, there, was }) => `${label}: ${there}, was ${was}`)
    .join('; ')}). “Try again” takes it as it is now.`

const countText = (count: number, { one, many }: Pick<ManyRows<object>, 'one' | 'many'>): string =>
  `${figureText(count)} ${count === 1 ? one : many}`

const areText = (count: number, of: Pick<ManyRows<object>, 'one' | 'many'>): string =>
  `${countText(count, of)} ${count === 1 ? 'is' : 'are'}`

const stayText = (count: number, of: Pick<ManyRows<object>, 'one' | 'many'>): string =>
  `${countText(count, of)} ${count === 1 ? 'stays as it is' : 'stay as they are'}:`

function Names({ of }: { of: readonly string[] }) {
  const more = of.length - SHOWN_NAMES
  return (
    <>
      {of.slice(0, SHOWN_NAMES).map((name, index) => (
        <>
          {index > 0 && ', '}
          <Text value={name} max={80} />
        </>
      ))}
      {more > 0 && ` and ${figureText(more)} more`}
    </>
  )
}

function Reasons({ of, nameOf }: { of: readonly Refused[]; nameOf: (row: object) => string }) {
  const more = of.length - SHOWN_ROWS
  return (
    <ul class="reasons">
      {of.slice(0, SHOWN_ROWS).map(({ row, why }) => (
        <li key={nameOf(row)}>
          <Text value={nameOf(row)} max={80} />: <Text value={why} max={300} />
        </li>
      ))}
      {more > 0 && <li>{figureText(more)} more</li>}
    </ul>
  )
}

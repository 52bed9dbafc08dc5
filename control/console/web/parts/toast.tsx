/**
 * Says at the bottom of the page what has been done, and offers to undo it where that is possible.
 */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { get, send, type ConsoleAnswer } from '../api/api.ts'
import { after } from '../api/browser.ts'
import { askAnew } from '../api/live.ts'
import { may, session, sessionEnded } from '../api/session.ts'
import type { Change } from '../api/views.ts'
import { figureText } from './format.ts'
import { paced } from './paced.ts'
import { visibleText } from './visible-text.ts'

interface ShownToast {
  readonly text: string
  /** The changes that can be undone, in the order in which they were made. */
  readonly changeIds?: readonly string[] | undefined
  /** Ends what is under way. */
  readonly onStop?: () => void
}

const shown = signal<ShownToast | undefined>(undefined)

/** Nothing after the session is over: what one user did is not told to the next one. */
function show(toast: ShownToast): void {
  if (session.peek().kind === 'signed-in') shown.value = toast
}

/** Time to read it, and to undo. */
const SHOWN_MS = 10_000

/**
 * Says what an answer of the API has changed, in the words of the server where it keeps the change;
 * else in `text`; without either it says nothing.
 */
export async function tellDone(answer: ConsoleAnswer<unknown>, text = ''): Promise<void> {
  if (answer.kind !== 'ok') return
  const { changeId } = answer
  const known =
    changeId === undefined || !may('audit:read')
      ? undefined
      : await get<Change>(`/changes/${encodeURIComponent(changeId)}`)
  const change = known?.kind === 'ok' ? known.data : undefined
  const said = change?.effect ?? text
  if (said === '') return
  show({
    text: said,
    ...(change?.is_reversible === true &&
      change.state === 'made' &&
      changeId !== undefined && { changeIds: [changeId] }),
  })
}

/** Says why something was not done. */
export const tellRefusal = (text: string): void => show({ text })

/** Says what was done to many at once, and offers to undo all of it. */
export async function tellLot(text: string, changeIds: readonly string[]): Promise<void> {
  const [first] = changeIds
  // The others can be undone if the first one can.
  const known =
    first === undefined || !may('audit:read')
      ? undefined
      : await get<Change>(`/changes/${encodeURIComponent(first)}`)
  const isReversible = known?.kind === 'ok' && known.data.is_reversible
  show({ text, ...(isReversible && { changeIds }) })
}

export function Toasts() {
  const { value: toast } = shown
  const isHeld = useRef(false)
  // It goes with the session, and so does what is under way.
  useEffect(
    () => () => {
      shown.peek()?.onStop?.()
      shown.value = undefined
    },
    [],
  )
  useEffect(() => {
    if (toast === undefined) return undefined
    const close = (): void => {
      if (toast.onStop !== undefined) return
      // Whoever points at it, or is in it by the keyboard, reads it.
      if (isHeld.current) cancel = after(SHOWN_MS / 2, close)
      else shown.value = undefined
    }
    let cancel = after(SHOWN_MS, close)
    return () => cancel()
  }, [toast])
  const hold = (held: boolean) => () => (isHeld.current = held)
  return (
    <div
      class="toasts"
      role="status"
      onMouseEnter={hold(true)}
      onMouseLeave={hold(false)}
      onFocusIn={hold(true)}
      onFocusOut={hold(false)}
    >
      {toast !== undefined && (
        <p class="toast">
          <span>{visibleText(toast.text, 300)}</span>
          {toast.changeIds !== undefined && (
            <button type="button" onClick={() => void undo(toast.changeIds ?? [])}>
              Undo
            </button>
          )}
          {toast.onStop === undefined ? (
            <button type="button" aria-label="Close" onClick={() => (shown.value = undefined)}>
              ✕
            </button>
          ) : (
            <button type="button" onClick={toast.onStop}>
              Stop
            </button>
          )}
        </p>
      )}
    </div>
  )
}

/** The last one first. The server refuses it where something came later. */
async function undo(changeIds: readonly string[]): Promise<void> {
  const count = changeIds.length
  let isStopped = false
  const onStop = (): void => void (isStopped = true)
  const tell = (done: number): void => {
    const text = `Undoing ${figureText(done)} of ${figureText(count)} …`
    if (count > 1) show({ text, onStop })
  }
  shown.value = undefined
  tell(0)
  const answers = await paced(changeIds.toReversed(), undoOne, {
    isStopped: () => isStopped,
    onProgress: tell,
  })
  const all = [...answers.values()]
  if (all.some(({ kind }) => kind === 'signed-out')) return sessionEnded()
  const refused = all.filter((answer) => answer.kind === 'failed')
  const [first] = refused
  const stopped = `${figureText(all.length - refused.length)} of ${figureText(count)} are undone.`
  show({
    text:
      first !== undefined
        ? refusedText(count, count - all.length + refused.length, first.message)
        : all.length < count
          ? stopped
          : 'It is undone.',
  })
  askAnew()
}

const undoOne = (changeId: string): Promise<ConsoleAnswer<unknown>> =>
  send('POST', `/changes/${encodeURIComponent(changeId)}/undo`, {
    reason: 'Undone right after it, in the console',
  })

const refusedText = (count: number, refused: number, why: string): string =>
  count === 1
    ? `It was not undone: ${why}`
    : `${figureText(count - refused)} of ${figureText(count)} are undone. ` +
      `The others were not: ${why}`

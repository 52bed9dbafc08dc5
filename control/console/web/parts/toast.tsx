/**
 * Says at the bottom of the page what has been done, and offers to undo it where that is possible.
 */
import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { get, send, type ConsoleAnswer } from '../api/api.ts'
import { after } from '../api/browser.ts'
import { askAnew } from '../api/live.ts'
import { may } from '../api/session.ts'
import type { Change } from '../api/views.ts'
import { visibleText } from './visible-text.ts'

interface ShownToast {
  readonly text: string
  /** The change that can be undone. */
  readonly changeId?: string | undefined
}

const shown = signal<ShownToast | undefined>(undefined)

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
  shown.value = {
    text: said,
    ...(change?.is_reversible === true && change.state === 'made' && { changeId }),
  }
}

export function Toasts() {
  const { value: toast } = shown
  const isHeld = useRef(false)
  useEffect(() => {
    if (toast === undefined) return undefined
    const close = (): void => {
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
          {toast.changeId !== undefined && (
            <button type="button" onClick={() => void undo(toast.changeId ?? '')}>
              Undo
            </button>
          )}
          <button type="button" aria-label="Close" onClick={() => (shown.value = undefined)}>
            ✕
          </button>
        </p>
      )}
    </div>
  )
}

/** The server refuses it where something came later. */
async function undo(changeId: string): Promise<void> {
  shown.value = undefined
  const path = `/changes/${encodeURIComponent(changeId)}/undo`
  const answer = await send('POST', path, { reason: 'Undone right after it, in the console' })
  if (answer.kind === 'signed-out') return
  shown.value = {
    text: answer.kind === 'ok' ? 'It is undone.' : `It was not undone: ${answer.message}`,
  }
  askAnew()
}

/** A question before something is changed. The browser keeps the focus inside, and Escape closes it. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Answer } from '../api/api.ts'
import { sessionEnded } from '../api/session.ts'
import { onForm } from './form.tsx'
import { Problem } from './text.tsx'

interface DialogProps {
  readonly title: string
  /** The text of the button: its effect. */
  readonly action: string
  readonly isDangerous?: boolean
  readonly onConfirm: (form: FormData) => Promise<Answer<unknown>>
  readonly onClose: (isDone: boolean) => void
  readonly children: ComponentChildren
}

export function Dialog({ title, action, isDangerous, onConfirm, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const problem = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  const isDone = useRef(false)
  useEffect(() => element.current?.showModal(), [])

  const confirm = async (form: FormData): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    const answer = await onConfirm(form)
    isBusy.value = false
    if (answer.kind === 'signed-out') return sessionEnded()
    if (answer.kind === 'failed') problem.value = answer.message
    else {
      isDone.current = true
      // The browser gives the focus back to where it was.
      element.current?.close()
    }
  }
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={() => onClose(isDone.current)}>
      <form onSubmit={onForm((form) => void confirm(form))}>
        <h2 id="dialog-title">{title}</h2>
        {children}
        <Problem message={problem.value} />
        <p class="buttons">
          <button type="button" onClick={() => element.current?.close()}>
            Cancel
          </button>
          <button class={isDangerous === true ? 'danger' : 'primary'} disabled={isBusy.value}>
            {action}
          </button>
        </p>
      </form>
    </dialog>
  )
}

/**
 * A question before something is changed. The browser keeps the focus inside, and Escape closes it.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { ConsoleAnswer } from '../api/api.ts'
import { sessionEnded } from '../api/session.ts'
import { FieldProblems, none, placed, reveal, showFirst, type Problems } from './field-problems.ts'
import { Problem } from './text.tsx'
import { tellDone } from './toast.tsx'

interface DialogProps {
  readonly title: string
  /** The text of the button: its effect. */
  readonly action: string
  readonly isDangerous?: boolean
  /** `open`: it goes on. */
  readonly onConfirm: (
    form: FormData,
  ) => Promise<ConsoleAnswer<unknown> | { readonly kind: 'open' }>
  readonly onClose: (isDone: boolean) => void
  /** Says afterwards what was done, where the server keeps no words of the change. */
  readonly done?: string | undefined
  readonly children: ComponentChildren
}

export function Dialog({
  title,
  action,
  isDangerous,
  onConfirm,
  onClose,
  done,
  children,
}: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const problem = useSignal<string | undefined>(undefined)
  const problems = useSignal<Problems>(none)
  const isBusy = useSignal(false)
  const isDone = useRef(false)
  useEffect(() => element.current?.showModal(), [])

  const confirm = async (form: HTMLFormElement): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    const answer = await onConfirm(new FormData(form))
    isBusy.value = false
    if (answer.kind === 'signed-out') return sessionEnded()
    problem.value = undefined
    problems.value = none
    if (answer.kind === 'open') return
    if (answer.kind === 'failed') {
      const { problems: ofFields, rest } = placed(form, answer)
      problem.value = rest
      problems.value = ofFields
      showFirst(form, ofFields)
    } else {
      isDone.current = true
      void tellDone(answer, done)
      // The browser gives the focus back to where it was.
      element.current?.close()
    }
  }
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={() => onClose(isDone.current)}>
      <form
        onInput={() => (problem.value = undefined)}
        onSubmit={(event) => {
          event.preventDefault()
          void confirm(event.currentTarget)
        }}
        // The browser's own complaint about a field that is folded away would be seen by nobody.
        onInvalidCapture={({ target }) => {
          if (target instanceof HTMLElement) reveal(target)
        }}
      >
        <h2 id="dialog-title">{title}</h2>
        <FieldProblems.Provider value={problems}>{children}</FieldProblems.Provider>
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

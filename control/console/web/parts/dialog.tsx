/**
 * A question before something is changed. The browser keeps the focus inside. Escape closes it, and
 * asks first where something was typed; what was typed in a dialog that ends otherwise, such as
 * with the session, is there again when it is opened again.
 */
import { type Signal, useSignal } from '@preact/signals'
import { type ComponentChildren, createContext } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import type { EditConflict, ConsoleAnswer } from '../api/api.ts'
import { sessionEnded } from '../api/session.ts'
import { draftOf, enteredOf } from './drafts.ts'
import {
  FieldProblems,
  FormIds,
  none,
  placed,
  reveal,
  showFirst,
  type Problems,
} from './field-problems.ts'
import { askedBy, Filled, type FilledFields, linkedValues, withoutAsking } from './prefill.ts'
import { later } from './later.tsx'
import { address } from './router.ts'
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
  /** It stands over another dialog, whose fields are not its own. */
  readonly isOver?: boolean
  readonly children: ComponentChildren
}

const ConflictChoices = later(() => import('./editing.ts').then((loaded) => loaded.ConflictChoices))

/** A place for a dialog over this one, which is to have no part in its form. */
export const Above = createContext<Signal<ComponentChildren> | undefined>(undefined)

export function Dialog(props: DialogProps) {
  const { title, action, isDangerous, onConfirm, onClose, done, isOver = false, children } = props
  const element = useRef<HTMLDialogElement>(null)
  const form = useRef<HTMLFormElement>(null)
  const problem = useSignal<string | undefined>(undefined)
  const problems = useSignal<Problems>(none)
  const conflict = useSignal<EditConflict | undefined>(undefined)
  const isBusy = useSignal(false)
  const isDone = useRef(false)
  const id = useId()
  const above = useSignal<ComponentChildren>(undefined)
  const typed = useTyped({ title, form, isOver })
  useEffect(() => element.current?.showModal(), [])

  const confirm = async (form: HTMLFormElement): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    const answer = await onConfirm(new FormData(form)).finally(() => (isBusy.value = false))
    if (answer.kind === 'signed-out') return sessionEnded()
    problem.value = undefined
    problems.value = none
    if (answer.kind === 'open') return
    if (answer.kind === 'failed' && answer.conflict !== undefined) conflict.value = answer.conflict
    else if (answer.kind === 'failed') {
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
  const close = (): void => element.current?.close()
  /** Not by chance: what was typed would be gone. */
  const leave = (event: Event): void => {
    event.preventDefault()
    event.stopPropagation()
    if (typed.isAny()) typed.isAsked.value = !typed.isAsked.value
    else close()
  }
  return (
    <dialog
      ref={element}
      aria-labelledby={`${id}title`}
      onCancel={leave}
      onKeyDown={(event) => {
        if (event.key === 'Escape' && !event.isComposing) leave(event)
      }}
      onClose={() => {
        typed.end()
        onClose(isDone.current)
      }}
    >
      <form
        ref={form}
        onInput={() => {
          problem.value = undefined
          typed.note()
        }}
        onSubmit={(event) => {
          event.preventDefault()
          void confirm(event.currentTarget)
        }}
        // The browser's own complaint about a field that is folded away would be seen by nobody.
        onInvalidCapture={({ target }) => {
          if (target instanceof HTMLElement) reveal(target)
        }}
      >
        <h2 id={`${id}title`}>{title}</h2>
        <FilledNotice of={typed.filled.value} onRestart={typed.restart} />
        <FormIds.Provider value={isOver ? id : ''}>
          <FieldProblems.Provider value={problems}>
            <Filled.Provider value={typed.filled.value} key={typed.filled.value?.from ?? 'typed'}>
              <Above.Provider value={above}>{children}</Above.Provider>
            </Filled.Provider>
          </FieldProblems.Provider>
        </FormIds.Provider>
        {conflict.value !== undefined && <ConflictChoices conflict={conflict.value} />}
        <Problem message={problem.value} />
        {typed.isAsked.value && (
          <Discard onKeep={() => (typed.isAsked.value = false)} onDiscard={close} />
        )}
        <p class="buttons" hidden={typed.isAsked.value}>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button class={isDangerous === true ? 'danger' : 'primary'} disabled={isBusy.value}>
            {action}
          </button>
        </p>
      </form>
      {above.value}
    </dialog>
  )
}

interface TypedOptions {
  readonly title: string
  readonly form: { readonly current: HTMLFormElement | null }
  readonly isOver: boolean
}

/** The values that a form begins with, and whether somebody has typed in it since. */
function useTyped({ title, form, isOver }: TypedOptions) {
  const isAsked = useSignal(false)
  const used = useSignal<ReadonlySet<string>>(new Set())
  const state = useRef<TypedState | undefined>(undefined)
  const filled = useSignal<FilledFields | undefined>(undefined)
  if (state.current === undefined) {
    const values = linkedNow(isOver)
    const isLinked = values !== undefined
    // The draft of another link is not that of this one.
    const draft = draftOf(isLinked ? `${title} ${location.search}` : title)
    const typed = draft.taken()
    if (typed !== undefined) filled.value = { from: 'draft', values: typed, used }
    else if (isLinked) filled.value = { from: 'link', values, used }
    state.current = { draft, isLinked, isDirty: typed !== undefined, hasEnded: false }
  }
  const { current } = state
  useEffect(() => {
    const { current: element } = form
    // It goes with its screen, and nobody has closed it: the session has ended, for example.
    return () => {
      if (current.isDirty && !current.hasEnded && element !== null)
        current.draft.keep(enteredOf(element))
    }
  }, [])
  return {
    filled,
    isAsked,
    isAny: () => current.isDirty,
    note: () => void (current.isDirty = true),
    restart: () => {
      current.isDirty = false
      filled.value = undefined
    },
    end: () => {
      current.hasEnded = true
      if (current.isLinked) withoutAsking(used.peek())
    },
  }
}

interface TypedState {
  readonly draft: ReturnType<typeof draftOf>
  /** The address has asked for the form. */
  readonly isLinked: boolean
  isDirty: boolean
  hasEnded: boolean
}

/** Undefined: no link has opened the dialog. */
function linkedNow(isOver: boolean): FilledFields['values'] | undefined {
  const { query } = address.peek()
  return isOver || askedBy(query).kind === 'nothing' ? undefined : linkedValues(query)
}

function FilledNotice({ of, onRestart }: { of: FilledFields | undefined; onRestart: () => void }) {
  if (of === undefined || of.used.value.size === 0) return null
  if (of.from === 'link')
    return <p class="notice">This form was filled in by a link. Check it before you confirm.</p>
  return (
    <p class="notice">
      What you typed before is here again.{' '}
      <button type="button" onClick={onRestart}>
        Start anew
      </button>
    </p>
  )
}

/** In place of the buttons, with the focus on what loses nothing. */
function Discard({ onKeep, onDiscard }: { onKeep: () => void; onDiscard: () => void }) {
  const keep = useRef<HTMLButtonElement>(null)
  useEffect(() => keep.current?.focus(), [])
  return (
    <div class="notice" role="alertdialog" aria-label="Discard what you typed?">
      <p>Discard what you typed?</p>
      <p class="buttons">
        <button type="button" ref={keep} onClick={onKeep}>
          Go on typing
        </button>
        <button type="button" class="danger" onClick={onDiscard}>
          Discard
        </button>
      </p>
    </div>
  )
}

/**
 * A button that opens a box below it. The browser closes the box with Escape and with a click
 * elsewhere, and gives the focus back to the button.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'

interface PopoverProps {
  /** Content of the button. */
  readonly text: ComponentChildren
  /** The name of the button for screen readers, where its content is none. */
  readonly label?: string
  readonly class?: string
  /** The heading of the box, for screen readers. */
  readonly title: string
  /** Made when the box opens; `close` closes it. */
  readonly children: (close: () => void) => ComponentChildren
}

/** Between the box and the edges of the window. */
const GAP = 8

export function Popover({ text, label, title, children, ...look }: PopoverProps) {
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const box = useRef<HTMLDivElement>(null)
  const isOpen = useSignal(false)
  useEffect(() => {
    if (!isOpen.value || box.current === null || button.current === null) return
    place(box.current, button.current.getBoundingClientRect())
    box.current.querySelector<HTMLElement>('input, select, a, button')?.focus()
  }, [isOpen.value])
  return (
    <>
      <button
        type="button"
        ref={button}
        class={look.class}
        popovertarget={id}
        aria-label={label}
        aria-haspopup="dialog"
      >
        {text}
      </button>
      <div
        id={id}
        ref={box}
        popover="auto"
        class="box"
        role="dialog"
        aria-label={title}
        onToggle={(event) => (isOpen.value = event.newState === 'open')}
      >
        {isOpen.value && children(() => box.current?.hidePopover())}
      </div>
    </>
  )
}

/** Below the button, or above it where there is more room; within the window. */
function place({ style, offsetWidth, offsetHeight }: HTMLElement, at: DOMRect): void {
  const left = Math.min(at.left, innerWidth - offsetWidth - GAP)
  const isBelow = at.bottom + offsetHeight + GAP <= innerHeight || at.top < innerHeight / 2
  const top = isBelow ? at.bottom + GAP / 2 : at.top - offsetHeight - GAP / 2
  style.left = `${Math.max(GAP, left)}px`
  style.top = `${Math.max(GAP, top)}px`
  style.maxHeight = `${isBelow ? innerHeight - top - GAP : at.top - GAP}px`
}

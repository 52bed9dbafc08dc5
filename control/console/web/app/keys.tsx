/** The keys of the console, and a list of them. A field that is typed in keeps its letters. */
import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { pathOf } from '../parts/address.ts'
import { after } from '../api/browser.ts'
import { go } from '../parts/router.ts'
import type { Screen } from './screens.ts'

/** After `g`. */
const letters: Readonly<Record<string, string>> = {
  n: 'now',
  l: 'calls',
  h: 'history',
  g: 'charts',
  m: 'simulator',
  c: 'customers',
  p: 'phones',
  u: 'numbers',
  r: 'carriers',
  o: 'outbound-routes',
  i: 'inbound-routes',
  d: 'nodes',
  t: 'tenants',
  k: 'keys',
  w: 'webhooks',
  b: 'bans',
  a: 'audit',
  s: 'settings',
}

/** The second letter has to come in so long. */
const PATIENCE_MS = 1_500

interface KeysOptions {
  readonly screens: readonly Screen[]
  readonly onFind: () => void
  readonly onHelp: () => void
}

export function useKeys({ screens, onFind, onHelp }: KeysOptions): void {
  const current = useRef({ screens, onFind, onHelp })
  current.current = { screens, onFind, onHelp }
  // An effect comes after the picture: a key that is pressed at once would be lost.
  useLayoutEffect(() => {
    let stopWaiting: (() => void) | undefined
    const onKey = (event: KeyboardEvent): void => {
      if (event.defaultPrevented || event.isComposing || event.altKey) return
      if (document.querySelector('dialog[open]') !== null) return
      const meaning = meaningOf(event, stopWaiting !== undefined)
      stopWaiting?.()
      stopWaiting = undefined
      if (meaning === undefined) return
      if (meaning === 'wait') {
        stopWaiting = after(PATIENCE_MS, () => (stopWaiting = undefined))
        return
      }
      event.preventDefault()
      if (meaning === 'find') current.current.onFind()
      else if (meaning === 'help') current.current.onHelp()
      else if (current.current.screens.some(({ name }) => name === meaning.screen))
        go(pathOf(meaning.screen))
    }
    document.addEventListener('keydown', onKey)
    return () => {
      document.removeEventListener('keydown', onKey)
      stopWaiting?.()
    }
  }, [])
}

type Meaning = 'find' | 'help' | 'wait' | { readonly screen: string }

function meaningOf(event: KeyboardEvent, isWaiting: boolean): Meaning | undefined {
  const { key, target } = event
  if (event.ctrlKey || event.metaKey) return key.toLowerCase() === 'k' ? 'find' : undefined
  if (target instanceof Element && target.closest(typing) !== null) return undefined
  const screen = isWaiting ? letters[key.toLowerCase()] : undefined
  if (screen !== undefined) return { screen }
  if (key === '/') return 'find'
  if (key === '?') return 'help'
  return key === 'g' ? 'wait' : undefined
}

const typing = 'input, textarea, select, [contenteditable]'

export function KeysHelp({
  screens,
  onClose,
}: {
  screens: readonly Screen[]
  onClose: () => void
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  const isApple = useSignal(/Mac|iP(hone|ad)/.test(navigator.userAgent))
  useEffect(() => dialog.current?.showModal(), [])
  const going = Object.entries(letters).flatMap(([letter, name]) => {
    const title = screens.find((screen) => screen.name === name)?.title
    return title === undefined ? [] : [{ keys: ['g', letter], text: title }]
  })
  const all = [
    { keys: [isApple.value ? '⌘ K' : 'Ctrl K'], text: 'Find anything' },
    { keys: ['/'], text: 'Find anything' },
    { keys: ['?'], text: 'Show these keys' },
    ...going,
  ]
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={onClose}>
      <form method="dialog">
        <h2 id="keys-title">Keys</h2>
        <dl class="keys">
          {all.map(({ keys, text }) => (
            <div key={keys.join()}>
              <dt>
                {keys.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
        <p class="buttons">
          <button class="primary">Close</button>
        </p>
      </form>
    </dialog>
  )
}

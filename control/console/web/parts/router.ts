/** The address that is shown, and how links change it. */
import { signal } from '@preact/signals'
import { pathOf, readAddress, type ScreenAddress } from './address.ts'

const current = (): ScreenAddress => readAddress(location.pathname, location.search)

export const address = signal<ScreenAddress>(current())

export function go(path: string): void {
  history.pushState(null, '', path)
  address.value = current()
  scrollTo(0, 0)
}

/** Changes the query without an entry in the history: undefined removes a name. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { screen, item, query } = address.value
  history.replaceState(null, '', pathOf(screen, item, { ...query, ...changes }))
  address.value = current()
}

/** Links to screens change the address without loading the page again. */
export function followLinks(): void {
  addEventListener('popstate', () => (address.value = current()))
  document.addEventListener('click', (event) => {
    const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!isPlain || link === null || link.hasAttribute('download') || link.target !== '') return
    if (link.origin !== location.origin || !/^\/console(?:\/|$)/.test(link.pathname)) return
    // Within the page the browser goes by itself, and takes the focus along.
    if (link.hash !== '' && link.pathname === location.pathname) return
    event.preventDefault()
    go(link.pathname + link.search)
  })
}

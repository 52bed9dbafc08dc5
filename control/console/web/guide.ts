/**
 * The search of the guide: sections without the words are hidden, in the text and in the contents.
 */
import { applyTheme } from './app/theme.ts'

applyTheme()
const input = document.querySelector<HTMLInputElement>('[role=search] input')
const count = document.querySelector('[role=search] [role=status]')
const menu = document.getElementById('menu')
const sections = [...document.querySelectorAll('main section')].map((element) => {
  const id = element.querySelector('[id]')?.id
  return {
    element,
    entry: document.querySelector(`#menu a[href="#${id ?? ''}"]`),
    text: (element.textContent ?? '').toLowerCase(),
  }
})

function search(): void {
  const words = (input?.value ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  let found = 0
  for (const { element, entry, text } of sections) {
    const isFound = words.every((word) => text.includes(word))
    element.toggleAttribute('hidden', !isFound)
    entry?.toggleAttribute('hidden', !isFound)
    if (isFound) found += 1
  }
  if (count !== null)
    count.textContent = words.length === 0 ? '' : `${found} ${found === 1 ? 'section' : 'sections'}`
}

input?.addEventListener('input', search)
document.querySelector('[role=search]')?.addEventListener('submit', (event) => {
  event.preventDefault()
  menu?.querySelector<HTMLElement>('a:not([hidden])')?.click()
})
menu?.addEventListener('click', ({ target }) => {
  if (target instanceof HTMLAnchorElement) menu.hidePopover()
})

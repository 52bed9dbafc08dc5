/** What was typed in a dialog that was closed before it was saved: kept until this page is left. */
import { session } from '../api/session.ts'

type Entered = Readonly<Record<string, string>>

const drafts = new Map<string, Entered>()

/** Older drafts are forgotten. */
const MAX_DRAFTS = 20
/** A table that was pasted is in a file as well. */
const MAX_CHARACTERS = 20_000

/** One user never sees what another one has typed. */
function keyOf(title: string): string {
  const { value } = session
  return `${value.kind === 'signed-in' ? value.user.id : ''} ${location.pathname} ${title}`
}

/** Hooks into a dialog: which draft it has, by its title and its page. */
export function draftOf(title: string) {
  const key = keyOf(title)
  return {
    taken: (): Entered | undefined => {
      const draft = drafts.get(key)
      drafts.delete(key)
      return draft
    },
    keep: (entered: Entered): void => {
      drafts.delete(key)
      drafts.set(key, entered)
      const [oldest] = drafts.keys()
      if (drafts.size > MAX_DRAFTS && oldest !== undefined) drafts.delete(oldest)
    },
  }
}

/** What a form has now, without secrets and files. Boxes that are not checked are ''. */
export function enteredOf(form: HTMLFormElement): Entered {
  const entered: Record<string, string> = {}
  let left = MAX_CHARACTERS
  for (const field of form.elements) {
    if (!isText(field) || field.name === '' || isSecret(field)) continue
    if (/^(file|radio)$/.test(field.type)) continue
    const isBox = field instanceof HTMLInputElement && field.type === 'checkbox'
    const isOfSeveral = isBox && field.getAttribute('value') !== null
    const text = isBox ? (field.checked ? (isOfSeveral ? field.value : 'on') : '') : field.value
    left -= text.length
    if (left < 0) break
    const before = entered[field.name]
    entered[field.name] = isOfSeveral && before ? [before, text].filter(Boolean).join('\n') : text
  }
  return entered
}

const isSecret = ({ type, name }: { readonly type: string; readonly name: string }): boolean =>
  type === 'password' || /secret|token|private_key/.test(name)

const isText = (
  field: Element,
): field is HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement =>
  field instanceof HTMLInputElement ||
  field instanceof HTMLSelectElement ||
  field instanceof HTMLTextAreaElement

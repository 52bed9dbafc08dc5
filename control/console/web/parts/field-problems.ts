/** Shows, at each field of a form, the problems that the API has found in it. */
import type { ReadonlySignal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { ApiFailure } from '../api/api.ts'

/** Messages by the names of fields. */
export type Problems = Readonly<Record<string, string>>

export const none: Problems = {}

/** Undefined: the form shows problems as a whole. */
export const FieldProblems = createContext<ReadonlySignal<Problems> | undefined>(undefined)

export const useFieldProblem = (name: string): string | undefined =>
  useContext(FieldProblems)?.value[name]

/** The messages of a refusal for the fields that a form has, and the rest as one text. */
export function placed(
  form: HTMLFormElement,
  { message, headline = message, details = [] }: ApiFailure,
): { readonly problems: Problems; readonly rest: string } {
  if (details.length === 0) return { problems: none, rest: message }
  const problems: Record<string, string> = {}
  const others: string[] = []
  for (const { path, message: problem } of details) {
    const name = fieldNamed(form, path)
    if (name === undefined) others.push(path === '' ? problem : `${path}: ${problem}`)
    else problems[name] ??= problem
  }
  // A problem stands at its field; that the body is not valid is no news then.
  const isSaid = others.length === 0
  const title = headline.startsWith('The body is') ? 'Nothing was saved' : headline
  return {
    problems,
    rest: isSaid ? `${title}: see the marked fields` : [headline, ...others].join('. '),
  }
}

/** Stands before the ids of a form: a form over another one may have fields of the same names. */
export const FormIds = createContext('')

/** Id of the element that shows the problem of a field. */
export const useProblemId = (name: string): string => `${useContext(FormIds)}problem-${name}`

/**
 * `customer_id` is said of the field `customer`, and of a list what is said of a part that has no
 * field.
 */
function fieldNamed(form: HTMLFormElement, path: string): string | undefined {
  const parts = path.split('.')
  const wider = parts.map((_, index) => parts.slice(0, parts.length - index).join('.'))
  return wider
    .flatMap((name) => [name, name.replace(/_id$/, '')])
    .find((name) => form.querySelector(`[data-problem="${CSS.escape(name)}"]`) !== null)
}

/** Opens what hides a field that is not valid, and goes to the first one. */
export function showFirst(form: HTMLFormElement, problems: Problems): void {
  const first = [...form.elements].find(
    (each) =>
      each instanceof HTMLElement && Object.hasOwn(problems, each.getAttribute('name') ?? ''),
  )
  if (!(first instanceof HTMLElement)) return
  reveal(first)
  first.focus()
}

export function reveal(field: HTMLElement): void {
  const hidden = field.closest('details')
  if (hidden !== null) hidden.open = true
}

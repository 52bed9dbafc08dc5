/**
 * Addresses that open a form with some fields filled in. A link never does anything: a person
 * confirms what the form shows.
 */
import { type Signal, useSignal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext, useEffect } from 'preact/hooks'
import { pathOf } from './address.ts'
import { address, setQuery } from './router.ts'

type Query = Readonly<Record<string, string>>

interface FormPlace {
  /** On the page of this thing. */
  readonly item?: string
  /** The action, as `actionName` has it; absent: the form for a new row. */
  readonly action?: string
  /** The key of the row in a list. */
  readonly of?: string
}

/** The address that opens a form: `formPath('numbers', { number: '+4930100' })`. */
export function formPath(
  screen: string,
  fields: Readonly<Record<string, string | undefined>> = {},
  { item, action, of }: FormPlace = {},
): string {
  const asked = action === undefined ? { new: '1' } : { do: action, of }
  return pathOf(screen, item, { ...fields, ...asked })
}

/** `Top up`: top-up. */
export const actionName = (text: string): string =>
  text.trim().toLowerCase().replaceAll(/\s+/g, '-')

/** What the address asks for. */
export type Asked =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'new' }
  /** `of`: the key of a row; undefined: of the page. */
  | { readonly kind: 'action'; readonly action: string; readonly of: string | undefined }

export function askedBy({ new: isNew, do: action, of }: Query): Asked {
  if (action !== undefined && action !== '') return { kind: 'action', action, of }
  return isNew === '1' ? { kind: 'new' } : { kind: 'nothing' }
}

/** The address asks no more: neither a reload nor another dialog opens the form again. */
export function withoutAsking(fields: Iterable<string> = []): void {
  const names = ['new', 'do', 'of', ...fields]
  if (!names.some((name) => Object.hasOwn(address.peek().query, name))) return
  setQuery(Object.fromEntries(names.map((name) => [name, undefined])))
}

/** Whether a dialog of a page is open, by a button or by the address: `?do=top-up`. */
export function useAsked(action: string) {
  const isOpen = useSignal(false)
  const asked = askedBy(address.value.query)
  const isMeant = asked.kind === 'action' && asked.action === action && asked.of === undefined
  useEffect(() => {
    if (isMeant) isOpen.value = true
  }, [isMeant])
  return {
    get value() {
      return isOpen.value
    },
    open: () => void (isOpen.value = true),
    close: () => void (isOpen.value = false),
  }
}

/** What the fields of a form begin with, by their names, in place of what they usually have. */
export interface FilledFields {
  readonly from: 'link' | 'draft'
  readonly values: Query
  /** The fields that have taken their values. */
  readonly used: Signal<ReadonlySet<string>>
}

export const Filled = createContext<FilledFields | undefined>(undefined)

/** The value that the field begins with; undefined: none was given. */
export function useFilled(name: string | undefined): string | undefined {
  const filled = useContext(Filled)
  const value = name === undefined ? undefined : filledValue(filled, name)
  useEffect(() => {
    if (filled === undefined || name === undefined || value === undefined) return
    if (!filled.used.peek().has(name)) filled.used.value = new Set([...filled.used.peek(), name])
  }, [filled, value])
  return value
}

export const filledValue = (filled: FilledFields | undefined, name: string): string | undefined =>
  filled !== undefined && Object.hasOwn(filled.values, name) ? filled.values[name] : undefined

/** Longer values are no names, numbers or reasons. */
const MAX_VALUE = 500

/** The values of a link that a form may take. */
export const linkedValues = (query: Query): Query =>
  Object.fromEntries(
    Object.entries(query)
      .filter(([, value]) => value.length <= MAX_VALUE)
      .map(([name, value]) => [name, value.replaceAll(/\p{Cc}+/gu, ' ')]),
  )

/** Whether a text of a link or a draft checks a box. */
export const isChecked = (text: string): boolean => /^(1|on|true|yes)$/i.test(text.trim())

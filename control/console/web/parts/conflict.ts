/**
 * Finds the changes of others since a form was opened, beside what was entered in it. Pure.
 */
import type { EditConflict, ConflictField } from '../api/api.ts'
import { fieldText, labelOf, rowsOf, type FormField, type FormRow } from './schema-fields.ts'

/** The words of a form for its fields and their values. */
export interface FieldWords {
  readonly labels?: Readonly<Record<string, string>>
  readonly words?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

interface Sides {
  /** The row as the form was drawn from it. */
  readonly base: FormRow
  /** The row as it is now. */
  readonly theirs: FormRow
  /** The version of `theirs`. */
  readonly etag: string
}

/**
 * Undefined: others have changed none of the fields of the form.
 *
 * @param mine the fields that were entered, each with what would be saved.
 * @param more fields that the form sends and does not draw from the schema.
 */
export function conflictOf(
  fields: readonly FormField[],
  { base, theirs, etag }: Sides,
  mine: { readonly body: FormRow; readonly more?: FormRow },
  textOf: (name: string) => string,
  said: FieldWords = {},
): EditConflict | undefined {
  const drawn = fields
    .filter((field) => storedText(field, base) !== storedText(field, theirs))
    .flatMap((field): ConflictField[] => {
      const yours = isIn(mine.body, field.name) ? enteredText(field, textOf, said) : undefined
      const there = shownText(field, theirs, said)
      const was = shownText(field, base, said)
      const name = { name: field.name, label: label(field, said) }
      return yours === there ? [] : [{ ...name, there, was, yours }]
    })
  const others = plainConflicts({ base, theirs }, mine.more ?? {}, said)
  const all = [...drawn, ...others]
  return all.length === 0 ? undefined : { etag, fields: all }
}

/** The same for fields without a schema. */
export function plainConflict(
  { base, theirs, etag }: Sides,
  mine: FormRow,
  said: FieldWords = {},
): EditConflict | undefined {
  const fields = plainConflicts({ base, theirs }, mine, said)
  return fields.length === 0 ? undefined : { etag, fields }
}

const plainConflicts = (
  { base, theirs }: Omit<Sides, 'etag'>,
  mine: FormRow,
  { labels = {} }: FieldWords,
): readonly ConflictField[] =>
  Object.entries(mine)
    .filter(([name]) => !isSame(base[name], theirs[name]) && !isSame(theirs[name], mine[name]))
    .map(([name, value]) => ({
      name,
      label: labels[name] ?? labelOf(name),
      there: plainText(theirs[name]),
      was: plainText(base[name]),
      yours: isSame(value, base[name]) ? undefined : plainText(value),
    }))

/** The fields that differ from the row. */
export const changedIn = (base: FormRow, mine: FormRow): FormRow =>
  Object.fromEntries(Object.entries(mine).filter(([name, value]) => !isSame(value, base[name])))

const isSame = (one: unknown, other: unknown): boolean =>
  JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

function plainText(value: unknown): string {
  if (value === true || value === false) return value ? 'yes' : 'no'
  if (Array.isArray(value)) return value.join(', ') || EMPTY
  return typeof value === 'string' || typeof value === 'number' ? `${value}` || EMPTY : EMPTY
}

const EMPTY = 'empty'

const label = (field: FormField, { labels = {} }: FieldWords): string =>
  labels[field.name] ?? field.label

/** Whether a body says the field: its path may have dots. */
const isIn = (body: FormRow, name: string): boolean => {
  const [top = '', inner] = name.split(/\.(.*)/s)
  const value = body[top]
  if (inner === undefined) return Object.hasOwn(body, top)
  return typeof value === 'object' && value !== null && Object.hasOwn(value, inner)
}

/** The value of a field, as it is compared. */
const storedText = (field: FormField, row: FormRow): string =>
  field.kind === 'rows'
    ? JSON.stringify(
        rowsOf(row, field.name).map((each) => field.items.map((item) => fieldText(item, each))),
      )
    : fieldText(field, row)

function shownText(field: FormField, row: FormRow, said: FieldWords): string {
  if (field.kind === 'rows')
    return rowsText(rowsOf(row, field.name).map((each) => partsOf(field, each)))
  const text = fieldText(field, row)
  const named = row[field.name]
  if (field.kind === 'reference' && typeof named === 'string') return named
  return worded(field, text, said)
}

function enteredText(field: FormField, textOf: (name: string) => string, said: FieldWords): string {
  if (field.kind === 'secret' || field.kind === 'pem') return 'a new one'
  if (field.kind !== 'rows') return worded(field, textOf(field.name).trim(), said)
  const count = Number(textOf(field.name))
  const rows = Array.from({ length: count }, (_, index) =>
    field.items.map((item) => textOf(`${field.name}.${index}.${item.name}`).trim()),
  )
  return rowsText(rows)
}

const partsOf = (field: FormField, row: FormRow): readonly string[] =>
  field.items.map((item) => fieldText(item, row))

const rowsText = (rows: readonly (readonly string[])[]): string =>
  rows.map((parts) => parts.filter(Boolean).join(' ')).join('; ') || EMPTY

function worded({ name, kind }: FormField, text: string, { words = {} }: FieldWords): string {
  if (kind === 'flag') return text === 'on' ? 'yes' : 'no'
  const known = words[name] ?? {}
  const parts = text.split('\n').map((part) => known[part] ?? part)
  return parts.join(', ') || EMPTY
}

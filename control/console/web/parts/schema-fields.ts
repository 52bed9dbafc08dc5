/** The fields of a form and the body that it sends, from the schema of the API. Pure. */
import type { BodySchema, FieldSchema } from '../api/views.ts'

type Kind =
  | 'text'
  | 'email'
  | 'secret'
  | 'amount'
  | 'count'
  | 'moment'
  | 'lines'
  /** Some of the values of a choice. */
  | 'choices'
  /** One text of several lines. */
  | 'pem'
  | 'flag'
  | 'choice'
  /** An id or a name of another resource. */
  | 'reference'
  /** A list of objects with fields of their own. */
  | 'rows'

export interface FormField {
  /** The path in the body, with dots: `auth.username`; in a row, the path in the row. */
  readonly name: string
  readonly label: string
  readonly kind: Kind
  readonly isRequired: boolean
  /** It may be null. */
  readonly isNullable: boolean
  /** The length of a text, in characters. */
  readonly maxLength: number | undefined
  /** The range of a count. */
  readonly minimum: number | undefined
  readonly maximum: number | undefined
  /** The values of a choice; '' where it may be left out. */
  readonly options: readonly string[]
  readonly description: string | undefined
  /** The text of the field in a form for a new row. */
  readonly initial: string
  /** The fields of each row of a list. */
  readonly items: readonly FormField[]
}

export type FormRow = Readonly<Record<string, unknown>>

/**
 * The fields that a form can show, in the order of the schema; those of an object by their names
 * with dots.
 *
 * @param names only these, in this order.
 */
export function fieldsOf(
  { create, change }: BodySchema,
  isNew: boolean,
  names?: readonly string[],
): readonly FormField[] {
  const all = fieldsIn(create).filter(
    ({ name }) => isNew || Object.hasOwn(change.properties, topOf(name)),
  )
  if (names === undefined) return all
  return names.flatMap((name) => all.find((field) => field.name === name) ?? [])
}

function fieldsIn({ properties = {}, required = [] }: FieldSchema): readonly FormField[] {
  return Object.entries(properties).flatMap(([name, schema]) => {
    const isAlias = name.endsWith('_id') && Object.hasOwn(properties, name.slice(0, -3))
    if (isAlias) return []
    const { plain } = withoutNull(schema)
    if (plain.properties !== undefined)
      return fieldsIn({ properties: plain.properties }).map((field) => ({
        ...field,
        name: `${name}.${field.name}`,
      }))
    const field = fieldOf(name, schema)
    return field === undefined ? [] : [{ ...field, isRequired: required.includes(name) }]
  })
}

const topOf = (name: string): string => name.split('.', 1)[0] ?? name

function fieldOf(name: string, schema: FieldSchema): FormField | undefined {
  const { plain, isNullable } = withoutNull(schema)
  const kind = kindOf(plain)
  if (kind === undefined) return undefined
  const optional = isNullable || schema.default === undefined ? [''] : []
  return {
    name,
    label: labelOf(name),
    kind,
    isRequired: false,
    isNullable,
    maxLength: plain.maxLength,
    minimum: plain.minimum,
    maximum: plain.maximum,
    options:
      kind === 'choices'
        ? (plain.items?.enum ?? []).map(String)
        : [...optional, ...(plain.enum ?? []).map(String)],
    description: wordsOf(schema.description ?? plain.description),
    initial: shown(kind, schema.default ?? null),
    items: kind === 'rows' && plain.items !== undefined ? fieldsIn(plain.items) : [],
  }
}

/** The value as people write it: an empty field is the null of the API. */
const wordsOf = (description: string | undefined): string | undefined =>
  description?.replaceAll('`', '').replaceAll(/\b(?:Null|Absent)\b/g, 'Empty')

/**
 * `anyOf` with null, at any depth, as one schema; of several spellings the one that lists its
 * values, or the last.
 */
function withoutNull(schema: FieldSchema): { plain: FieldSchema; isNullable: boolean } {
  const { anyOf, type } = schema
  if (anyOf === undefined) {
    if (!Array.isArray(type) || !type.includes('null')) return { plain: schema, isNullable: false }
    const [only, ...more] = (type as readonly string[]).filter((each) => each !== 'null')
    const kinds = more.length === 0 ? only : [only ?? '', ...more]
    return { plain: { ...schema, ...(kinds !== undefined && { type: kinds }) }, isNullable: true }
  }
  const kinds = anyOf.filter((each) => each.type !== 'null')
  const isNullable = kinds.length < anyOf.length
  if (isReference(kinds)) return { plain: { anyOf: kinds }, isNullable }
  const inner = withoutNull(kinds.find((each) => each.enum !== undefined) ?? kinds.at(-1) ?? {})
  return { plain: inner.plain, isNullable: inner.isNullable || isNullable }
}

const isReference = (kinds: readonly FieldSchema[]): boolean =>
  kinds.length === 2 && kinds[0]?.type === 'integer' && kinds[1]?.type === 'string'

function kindOf(schema: FieldSchema): Kind | undefined {
  const { type, enum: values, items, format, contentMediaType, anyOf } = schema
  if (anyOf !== undefined) return 'reference'
  if (values !== undefined) return 'choice'
  // Money is written as a text, so that no digit is lost.
  if (Array.isArray(type)) return type.includes('number') ? 'amount' : undefined
  if (type === 'boolean') return 'flag'
  if (type === 'integer') return 'count'
  if (type === 'array' && items?.properties !== undefined) return 'rows'
  if (type === 'array') return items?.enum === undefined ? 'lines' : 'choices'
  if (type !== 'string') return undefined
  if (contentMediaType !== undefined) return 'pem'
  if (format === 'password') return 'secret'
  if (format === 'date-time') return 'moment'
  return format === 'email' ? 'email' : 'text'
}

/** `auth.strip_headers`: Strip headers. */
export function labelOf(name: string): string {
  const words = name.replace(/^is_/, '').replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function shown(kind: Kind, value: unknown): string {
  if (kind === 'flag') return value === true ? 'on' : ''
  if (kind === 'moment') return typeof value === 'string' ? localTime(value) : ''
  if (Array.isArray(value)) return value.join('\n')
  return typeof value === 'string' || typeof value === 'number' ? `${value}` : ''
}

/** The form of `<input type="datetime-local">`: 2026-11-22T09:30 in the viewer's zone. */
export function localTime(at: string): string {
  const date = new Date(at)
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

/** The text that the form shows at first. A reference is its id after `#`, where it is known. */
export function fieldText(
  { name, kind, initial, options }: FormField,
  row: FormRow | undefined,
): string {
  if (row === undefined) return initial
  if (kind === 'choices')
    return options.filter((each) => listAt(row, name).includes(each)).join('\n')
  if (kind === 'rows') return `${rowsOf(row, name).length}`
  const id = kind === 'reference' ? valueAt(row, `${name}_id`) : undefined
  return typeof id === 'number' ? `#${id}` : shown(kind, valueAt(row, name))
}

/**
 * The rows of a list as the form shows them at first: the first one of a required list is blank.
 */
export const rowsOf = (row: FormRow | undefined, name: string): readonly FormRow[] =>
  row === undefined ? [] : (listAt(row, name) as readonly FormRow[])

function listAt(row: FormRow, name: string): readonly unknown[] {
  const value = valueAt(row, name)
  return Array.isArray(value) ? value : []
}

export const rowsAtFirst = (
  { name, isRequired }: FormField,
  row: FormRow | undefined,
): readonly (FormRow | undefined)[] =>
  row === undefined && isRequired ? [undefined] : rowsOf(row, name)

const valueAt = (row: FormRow, name: string): unknown =>
  name
    .split('.')
    .reduce<unknown>(
      (value, part) =>
        typeof value === 'object' && value !== null ? (value as FormRow)[part] : undefined,
      row,
    )

/**
 * The fields that differ from the initial values of the form: changes of others to the rest stay.
 *
 * @param textOf what the form has now, '' where it has nothing; of a list, the number of its rows.
 */
export function bodyFrom(
  fields: readonly FormField[],
  row: FormRow | undefined,
  textOf: (name: string) => string,
): FormRow {
  const body: Record<string, unknown> = {}
  for (const field of fields) {
    if (!isChanged(field, row, textOf)) continue
    const { name, isNullable } = field
    const value = field.kind === 'rows' ? rowsFrom(field, textOf) : valueOf(field, textOf(name))
    const [top = '', inner] = name.split(/\.(.*)/s)
    if (inner === undefined) {
      // A new row has no empty field: the field is absent.
      if (value !== null || row !== undefined) body[top] = value
      continue
    }
    // A change is merged into the object: its other fields stay, and null restores the default.
    const members = (body[top] ?? {}) as Record<string, unknown>
    body[top] = members
    if (value !== null || row !== undefined || isNullable) members[inner] = value
  }
  return body
}

function isChanged(
  field: FormField,
  row: FormRow | undefined,
  textOf: (name: string) => string,
): boolean {
  if (field.kind !== 'rows') return textOf(field.name).trim() !== fieldText(field, row)
  const before = rowsOf(row, field.name).map((each) =>
    field.items.map((item) => fieldText(item, each)),
  )
  const after = indexesOf(field, textOf).map((index) =>
    field.items.map((item) => textOf(`${field.name}.${index}.${item.name}`).trim()),
  )
  return JSON.stringify(before) !== JSON.stringify(after)
}

const indexesOf = ({ name }: FormField, textOf: (name: string) => string): readonly number[] =>
  Array.from({ length: Number(textOf(name)) }, (_, index) => index)

/** Empty fields of a row are absent. */
const rowsFrom = (field: FormField, textOf: (name: string) => string): readonly FormRow[] =>
  indexesOf(field, textOf).map((index) =>
    Object.fromEntries(
      field.items.flatMap((item) => {
        const value = valueOf(item, textOf(`${field.name}.${index}.${item.name}`))
        return value === null ? [] : [[item.name, value]]
      }),
    ),
  )

/** Null: as it is by default. */
function valueOf({ kind }: FormField, entered: string): unknown {
  // A password may begin with a space.
  const text = kind === 'secret' ? entered : entered.trim()
  if (kind === 'flag') return text === 'on'
  if (text === '') return null
  if (kind === 'count') return Number(text)
  if (kind === 'moment') return new Date(text).toISOString()
  if (kind === 'reference' && /^#\d+$/.test(text)) return Number(text.slice(1))
  if (kind !== 'lines' && kind !== 'choices') return text
  return text
    .split(/[\n,;]+/)
    .map((line) => line.trim())
    .filter(Boolean)
}

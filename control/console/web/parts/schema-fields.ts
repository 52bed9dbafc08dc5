/** The fields of a form and the body that it sends, from the schema of the API. Pure. */
import type { BodySchema, FieldSchema } from '../api/views.ts'

export interface FormField {
  readonly name: string
  readonly label: string
  readonly kind: 'text' | 'email' | 'amount' | 'count' | 'lines' | 'flag' | 'choice'
  readonly isRequired: boolean
  /** Of a text, in characters. */
  readonly maxLength: number | undefined
  /** Of a choice; '' where it may be left out. */
  readonly options: readonly string[]
  readonly description: string | undefined
  /** Of a new one. */
  readonly initial: string
}

export type Row = Readonly<Record<string, unknown>>

/**
 * The fields that a form can show, in the order of the schema. Lists of objects and secrets need a form of their own.
 *
 * @param names only these, in this order.
 */
export function fieldsOf(
  { create, change }: BodySchema,
  isNew: boolean,
  names: readonly string[] = Object.keys(create.properties),
): readonly FormField[] {
  return names.flatMap((name) => {
    const schema = create.properties[name]
    const isAlias = name.endsWith('_id') && Object.hasOwn(create.properties, name.slice(0, -3))
    if (schema === undefined || isAlias) return []
    if (!isNew && !Object.hasOwn(change.properties, name)) return []
    const field = fieldOf(name, schema)
    if (field === undefined) return []
    return [{ ...field, isRequired: create.required?.includes(name) === true }]
  })
}

function fieldOf(name: string, schema: FieldSchema): FormField | undefined {
  const { plain, isNullable } = withoutNull(schema)
  const kind = kindOf(plain)
  if (kind === undefined || plain.format === 'password') return undefined
  const optional = isNullable ? [''] : []
  return {
    name,
    label: labelOf(name),
    kind,
    isRequired: false,
    maxLength: plain.maxLength,
    options: [...optional, ...(plain.enum ?? [])],
    description: wordsOf(schema.description ?? plain.description),
    initial: shown(kind, schema.default ?? null),
  }
}

/** For people: an empty field is the null of the API. */
const wordsOf = (description: string | undefined): string | undefined =>
  description?.replaceAll('`', '').replaceAll(/\bNull\b/g, 'Empty')

/** `anyOf` with null, at any depth, as one schema; of an id or a name, the name. */
function withoutNull(schema: FieldSchema): { plain: FieldSchema; isNullable: boolean } {
  if (schema.anyOf === undefined) return { plain: schema, isNullable: false }
  const kinds = schema.anyOf.filter(({ type }) => type !== 'null')
  const inner = withoutNull(kinds.at(-1) ?? {})
  return {
    plain: inner.plain,
    isNullable: inner.isNullable || kinds.length < schema.anyOf.length,
  }
}

function kindOf({ type, enum: values, items, format }: FieldSchema): FormField['kind'] | undefined {
  if (values !== undefined) return 'choice'
  // Money is written as a text, so that no digit is lost.
  if (Array.isArray(type)) return type.includes('number') ? 'amount' : undefined
  if (type === 'boolean') return 'flag'
  if (type === 'integer') return 'count'
  if (type === 'array') return items?.type === 'string' ? 'lines' : undefined
  if (type !== 'string') return undefined
  return format === 'email' ? 'email' : 'text'
}

/** `strip_headers`: Strip headers. */
function labelOf(name: string): string {
  const words = name.replace(/^is_/, '').replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

function shown(kind: FormField['kind'], value: unknown): string {
  if (kind === 'flag') return value === true ? 'on' : ''
  if (Array.isArray(value)) return value.join('\n')
  return typeof value === 'string' || typeof value === 'number' ? `${value}` : ''
}

/** As the form shows it at first. */
export const fieldText = (field: FormField, row: Row | undefined): string =>
  row === undefined ? field.initial : shown(field.kind, row[field.name])

/**
 * The fields that differ from the initial values of the form: changes of others to the rest stay.
 *
 * @param textOf what the form has now, '' where it has nothing.
 */
export function bodyFrom(
  fields: readonly FormField[],
  row: Row | undefined,
  textOf: (name: string) => string,
): Row {
  const changed = fields.filter((field) => textOf(field.name).trim() !== fieldText(field, row))
  return Object.fromEntries(
    changed.map((field) => [field.name, valueOf(field, textOf(field.name).trim())]),
  )
}

/** Null: as it is by default. */
function valueOf({ kind }: FormField, text: string): unknown {
  if (kind === 'flag') return text === 'on'
  if (text === '') return null
  if (kind === 'count') return Number(text)
  return kind === 'lines' ? text.split(/[\s,]+/).filter(Boolean) : text
}

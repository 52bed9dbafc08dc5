/**
 * The table of fields of a resource: one entry says what a write takes, what an answer shows, in
 * which column the value stands, and its example. Body, view, columns, references and example
 * follow from it.
 */
import { z } from 'zod'
import {
  type Column,
  column as renamed,
  type ColumnName,
  flag,
  money,
  type Row,
  time,
} from './field-columns.ts'
import * as known from './fields.ts'
import { count, exampleTime, moment } from './view-fields.ts'

/** A kind of value: its schema in a body, its schema in an answer, and how a column has it. */
interface FieldKind<Body extends z.ZodType, View extends z.ZodType> {
  readonly body: Body
  readonly view: View
  /** Absent: the column has the value as it is. */
  readonly stored?: (column: string) => Column
}

interface FieldNotes {
  /** The description of the field in a body; of a field that is only shown, in an answer. */
  readonly about?: string
  /** Absent: the default, or null. */
  readonly example?: unknown
  /** Absent: the name of the field. */
  readonly column?: ColumnName
  readonly stored?: ((column: string) => Column) | undefined
  /** The field names a row of this kind; its id is in the field with `_id` at the end. */
  readonly refersTo?: known.Referable
  /** The field has no column of its own: `check` and `written` see to it. */
  readonly isStoredElsewhere?: true
  /** An update cannot contain the field. */
  readonly isOnlyAtCreation?: true
  /** A document leaves the field out, because it is shown in another way than written. */
  readonly isLeftOut?: true
}

interface Field<Body, View> extends FieldNotes {
  readonly body: Body
  readonly view: View
}

/** A field that has a default. */
export const of = <Body extends z.ZodType, View extends z.ZodType>(
  { body, view, stored }: FieldKind<Body, View>,
  notes: FieldNotes & { readonly default: z.core.util.NoUndefined<z.output<Body>> },
): Field<z.ZodDefault<Body>, View> => {
  const { default: value, ...rest } = notes
  return { stored, example: value, ...rest, body: about(body.default(value), notes), view }
}

/** A field that every body has. */
export const required = <Body extends z.ZodType, View extends z.ZodType>(
  { body, view, stored }: FieldKind<Body, View>,
  notes: FieldNotes = {},
): Field<Body, View> => ({ stored, ...notes, body: about(body, notes), view })

/** A field that may be null, and is null where a body does not have it. */
export const optional = <Body extends z.ZodType, View extends z.ZodType>(
  { body, view, stored }: FieldKind<Body, View>,
  notes: FieldNotes = {},
): Field<z.ZodOptional<z.ZodNullable<Body>>, z.ZodNullable<View>> => ({
  stored,
  example: null,
  ...notes,
  body: about(body.nullish(), notes),
  view: view.nullable(),
})

/** A field that answers show, and no body has. */
export const shown = <View extends z.ZodType>(
  view: View,
  notes: FieldNotes = {},
): Field<undefined, View> => ({ ...notes, body: undefined, view: about(view, notes) })

/** A field that bodies have, and no answer shows. */
export const written = <Body extends z.ZodType>(
  body: Body,
  notes: FieldNotes = {},
): Field<Body, undefined> => ({
  ...(notes.stored === undefined && { isStoredElsewhere: true }),
  ...notes,
  body: about(body, notes),
  view: undefined,
})

const about = <Schema extends z.ZodType>(schema: Schema, { about: words }: FieldNotes): Schema =>
  words === undefined ? schema : schema.describe(words)

/** The name of a row of another resource; `idOf` is the field with its id. */
export const refersTo = (kind: known.Referable, notes: FieldNotes = {}) =>
  optional({ body: known.reference, view: z.string() }, { ...notes, refersTo: kind })

export const idOf = (notes: FieldNotes = {}) =>
  optional({ body: known.reference, view: z.int() }, notes)

export const tenant = (notes: FieldNotes = {}) =>
  optional({ body: known.reference, view: z.string() }, { column: 'slug', ...notes })

export const name = { body: known.name, view: z.string() }
export const text = (maxLength: number) => ({ body: known.text(maxLength), view: z.string() })
export const asText = <Body extends z.ZodType>(body: Body) => ({ body, view: z.string() })
/** A name is shown as the data of zones spells it. */
export const timeZone = { body: known.timeZone, view: z.string() }
export const limit = { body: known.limit, view: count }
export const yesOrNo = { body: z.boolean(), view: z.boolean(), stored: flag }
export const amount = { body: known.money(), view: z.number(), stored: money }

export const integer = (least: number, most: number) => ({
  body: z.int().min(least).max(most),
  view: z.int(),
})

export const oneOf = <const Values extends readonly [string, ...string[]]>(values: Values) => {
  const choice = z.enum(values)
  return { body: choice, view: choice }
}

export const id = shown(z.int(), { example: 1 })
export const createdAt = shown(moment, { stored: time, example: exampleTime })
export const updatedAt = shown(moment, { stored: time, example: exampleTime })
/** A time that may be null. */
export const timeOrNull = (notes: FieldNotes = {}) =>
  shown(moment.nullable(), { stored: time, example: null, ...notes })

type Fields = Readonly<Record<string, Field<z.ZodType | undefined, z.ZodType | undefined>>>

/** The schemas of the fields that have one in this part. */
type Shape<Table extends Fields, Part extends 'body' | 'view'> = {
  [Name in keyof Table as Table[Name][Part] extends z.ZodType ? Name : never]: Extract<
    Table[Name][Part],
    z.ZodType
  >
}

/** The schemas, columns and references that follow from the fields of a resource. */
export interface FieldTable<Body extends z.ZodObject, View extends z.ZodObject> {
  readonly body: Body
  readonly view: View
  /** Where a field is not the column of its name. */
  readonly columns: Readonly<Record<string, Column>>
  /** `customer`: the body has `customer` or `customer_id`, the row `customer_id`, the view both. */
  readonly references: Readonly<Record<string, known.Referable>>
  readonly storedElsewhere: readonly string[]
  readonly onlyAtCreation: readonly string[]
  readonly leftOut: readonly string[]
  /** An answer. */
  readonly example: Row
}

/**
 * `schemaId` names the view in the OpenAPI document. `first`: fields that an answer shows before
 * the others, in this order.
 */
export function table<Table extends Fields>(
  fields: Table,
  { schemaId, first = [] }: { schemaId?: string; first?: readonly (keyof Table & string)[] } = {},
) {
  const entries = Object.entries<Fields[string]>(fields)
  const names = new Set<string>(first)
  for (const [name, { refersTo: kind }] of entries) {
    // Answers show the id of a reference before its name.
    if (kind !== undefined) names.add(`${name}_id`)
    names.add(name)
  }
  const inView = [...names].flatMap((name) => {
    const { view, example } = fields[name] ?? {}
    return view === undefined ? [] : [{ name, view, example }]
  })
  // The compiler does not follow which entries of a table are left.
  const bodyShape = Object.fromEntries(
    entries.map(([name, { body }]) => [name, body]).filter(([, body]) => body !== undefined),
  ) as Shape<Table, 'body'>
  const viewShape = Object.fromEntries(inView.map(({ name, view }) => [name, view])) as Shape<
    Table,
    'view'
  >
  const view = z.strictObject(viewShape)
  const having = (note: 'isStoredElsewhere' | 'isOnlyAtCreation' | 'isLeftOut') =>
    entries.filter(([, notes]) => notes[note] === true).map(([name]) => name)
  return {
    body: z.strictObject(bodyShape),
    view: schemaId === undefined ? view : view.meta({ id: schemaId }),
    columns: Object.fromEntries(
      entries.flatMap(([name, { stored, column }]) =>
        stored === undefined && column === undefined
          ? []
          : [[name, (stored ?? renamed)(column ?? name)]],
      ),
    ),
    references: Object.fromEntries(
      entries.flatMap(([name, { refersTo: kind }]) => (kind === undefined ? [] : [[name, kind]])),
    ),
    storedElsewhere: having('isStoredElsewhere'),
    onlyAtCreation: having('isOnlyAtCreation'),
    leftOut: having('isLeftOut'),
    example: Object.fromEntries(inView.map(({ name, example }) => [name, example])),
  }
}

/**
 * A row as an answer shows it. `computed` has the fields that are no columns. A field that is in
 * neither is left out.
 */
export function shownOf<View extends z.ZodObject>(
  { view, columns }: Pick<FieldTable<z.ZodObject, View>, 'view' | 'columns'>,
  row: Row,
  computed: Row = {},
): z.output<View> {
  const shown = Object.keys(view.shape).flatMap((field) => {
    if (Object.hasOwn(computed, field)) return [[field, computed[field]]]
    const known = columns[field]
    if (known !== undefined) return [[field, known.read(row)]]
    return Object.hasOwn(row, field) ? [[field, row[field]]] : []
  })
  // The fields name their columns as texts: the tests that validate every response hold the types.
  return Object.fromEntries(shown) as z.output<View>
}

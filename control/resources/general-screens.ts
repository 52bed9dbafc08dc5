/** The screens that follow from definitions; `build.mjs` writes them into the console. */
import { z } from 'zod'
import { wordsFor } from '../http/resource-operations.ts'
import { nouns } from './nouns.ts'
import type { AnyDefinition, NounWords } from './resource.ts'

export interface GeneralScreen extends NounWords {
  /** `contact` */
  readonly one: string
  /** `contacts` */
  readonly many: string
  readonly path: string
  /** Its `:read` shows the screen, its `:write` the buttons. */
  readonly scope: string
  /** The fields of an answer, without ids and the time of the last change. */
  readonly columns: readonly ShownField[]
}

interface ShownField {
  readonly name: string
  readonly kind: 'text' | 'figure' | 'moment' | 'flag'
}

export const generalScreens = (): readonly GeneralScreen[] =>
  Object.values<AnyDefinition>(nouns).flatMap(({ noun, path, scope, fields, general }) => {
    if (general === undefined || general.hasOwnScreen === true) return []
    const { words: one, many } = wordsFor(noun)
    return [{ ...general, one, many, path, scope, columns: shownFields(fields.view) }]
  })

function shownFields(view: z.ZodObject): readonly ShownField[] {
  // A named schema would only be a reference.
  const plain = z.object(view.shape)
  const { properties = {} } = z.toJSONSchema(plain, { io: 'output', unrepresentable: 'any' })
  return Object.entries(properties).flatMap(([name, schema]) =>
    isHidden(name) ? [] : [{ name, kind: kindOf(schema) }],
  )
}

const isHidden = (name: string): boolean =>
  name === 'id' || name.endsWith('_id') || name === 'updated_at'

function kindOf(schema: z.core.JSONSchema._JSONSchema): ShownField['kind'] {
  if (typeof schema === 'boolean') return 'text'
  const { type, format, anyOf = [] } = schema
  const inner = anyOf.find((each) => typeof each === 'boolean' || each.type !== 'null')
  if (inner !== undefined) return kindOf(inner)
  if (type === 'boolean') return 'flag'
  if (type === 'integer' || type === 'number') return 'figure'
  return format === 'date-time' ? 'moment' : 'text'
}

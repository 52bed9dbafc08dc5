/** Describes the five operations of `resources/resource-routes.ts` for one resource. */
import { z } from 'zod'
import { data, list, type Operation, type Operations } from './operation.ts'

interface ResourceText {
  /** The full path: `/api/v1/customers`. */
  readonly path: string
  /** `customer`, and `Customer` in operation ids. */
  readonly noun: string
  readonly plural: string
  readonly tag: Operation['tag']
  readonly view: z.ZodType
  readonly example: { readonly id: number } & Readonly<Record<string, unknown>>
  /** A body that creates the example. */
  readonly body: unknown
  readonly patch: unknown
  /** What is read of it includes what other nodes know. */
  readonly nodes?: Operation['nodes']
}

export const deleted = z.strictObject({ id: z.int(), deleted: z.literal(true) })

export function resourceOperations(text: ResourceText): Operations {
  const { path, noun, plural, tag, view, example } = text
  const nodes = text.nodes === undefined ? {} : { nodes: text.nodes }
  const name = pascal(noun)
  const item = `${path}/:id`
  const article = /^[aeiou]/.test(noun) ? 'an' : 'a'
  const one: Record<string, Operation> = {
    [`POST ${path}`]: {
      id: `create${name}`,
      tag,
      summary: `Create ${article} ${noun}`,
      body: text.body,
      answer: data(view, example, 201),
      refusals: [409],
    },
    [`GET ${path}`]: {
      id: `list${pascal(plural)}`,
      tag,
      summary: `List ${plural}`,
      ...nodes,
      answer: list(view, example),
    },
    [`GET ${item}`]: {
      id: `get${name}`,
      tag,
      summary: `Get ${article} ${noun}`,
      ...nodes,
      answer: data(view, example),
    },
    [`PATCH ${item}`]: {
      id: `update${name}`,
      tag,
      summary: `Update ${article} ${noun}. Absent fields keep their values.`,
      body: text.patch,
      answer: data(view, example),
      refusals: [409],
    },
    [`DELETE ${item}`]: {
      id: `delete${name}`,
      tag,
      summary: `Delete ${article} ${noun}`,
      answer: data(deleted, { id: example.id, deleted: true }),
      refusals: [409],
    },
  }
  return one
}

const pascal = (words: string): string =>
  words
    .split(' ')
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('')

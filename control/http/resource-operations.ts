/** Describes the five routes of a resource. */
import { z } from 'zod'
import { bare, data, list, type Operation } from './operation.ts'

/** The description of a resource in the OpenAPI document, beyond its schemas. */
export interface ResourceDescription {
  readonly tag: Operation['tag']
  /** The schema of responses; absent: the view. */
  readonly shown?: z.ZodType
  readonly example: Readonly<Record<string, unknown>>
  /** A body that creates the example. */
  readonly body: unknown
  readonly patch: unknown
  /** The response of a creation, where it shows more than the others. */
  readonly created?: { readonly shown: z.ZodType; readonly example: unknown }
  /** Responses include figures of other instances. */
  readonly instances?: Operation['instances']
}

export const deleted = z.strictObject({ id: z.int(), deleted: z.literal(true) })

/** @param noun such as `Rate plan`. */
export function resourceOperations(
  noun: string,
  view: z.ZodType,
  { tag, example, body, patch, instances, created, shown = view }: ResourceDescription,
  isBare: boolean,
) {
  const name = pascal(noun)
  const { one, many } = wordsFor(noun)
  const read = { tag, ...(instances !== undefined && { instances }) }
  const written = { tag, refusals: [409] } as const
  const answer = isBare ? bare : data
  return {
    create: {
      id: `create${name}`,
      ...written,
      summary: `Create ${one}`,
      body,
      answer: answer(created?.shown ?? shown, created?.example ?? example, 201),
    },
    list: {
      id: `list${name}s`,
      ...read,
      summary: `List ${many}`,
      answer: isBare ? bareList(shown, example) : list(shown, example),
    },
    get: { id: `get${name}`, ...read, summary: `Get ${one}`, answer: answer(shown, example) },
    update: {
      id: `update${name}`,
      ...written,
      summary: `Update ${one}. Absent fields keep their values.`,
      body: patch,
      answer: answer(shown, example),
    },
    remove: {
      id: `delete${name}`,
      ...written,
      summary: `Delete ${one}`,
      answer: answer(deleted, { id: example['id'], deleted: true }),
    },
  } satisfies Readonly<Record<string, Operation>>
}

/** `AI agent` in sentences: `AI agent`, `an AI agent`, `AI agents`. */
export function wordsFor(noun: string) {
  const words = /^[A-Z]{2}/.test(noun) ? noun : noun.toLowerCase()
  return { words, one: `${/^[aeiou]/i.test(noun) ? 'an' : 'a'} ${words}`, many: `${words}s` }
}

/** SPECIFICATION.md §4.1. */
const bareList = (element: z.ZodType, example: unknown) =>
  bare(
    z.strictObject({
      data: z.array(element),
      total: z.int().min(0),
      meta: z.strictObject({ page: z.int(), limit: z.int(), total: z.int().min(0) }),
    }),
    { data: [example], total: 1, meta: { page: 1, limit: 50, total: 1 } },
  )

const pascal = (words: string): string =>
  words
    .split(' ')
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('')

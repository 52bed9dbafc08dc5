/** What the OpenAPI document says of a route beyond the notes that its own handlers leave. */
import type { z } from 'zod'
import type { ErrorStatus } from '../http/api-error.ts'

/** In the order of the page. */
export const tags = {
  System: 'Is it there, how does it do, who changed what, whom does SIP not listen to.',
  Keys: 'Credentials of machines.',
  Sessions: 'Logging in and out.',
  Users: 'Accounts of the staff.',
  Tenants: 'Customer organisations and their SIP domains.',
  Dispatcher: 'Clusters of backend nodes, and which of them get calls.',
  Routing: 'Carriers, and where calls come from and go to.',
  Extensions: 'Phones.',
  Calls: 'Live calls and the records of past ones.',
  Agents: 'Numbers that a machine answers.',
  Customers: 'Who pays: wallets and ledgers.',
  Rates: 'What calls cost.',
  Charging: 'What nodes ask before, during and after a call.',
  Payments: 'What the payment provider tells, and what needs an eye.',
  'Customer edge': 'What customers see of themselves.',
  Webhooks: 'Events of calls and money, told to whoever listens.',
  'Tools for AI agents': 'The tools of the Model Context Protocol, over plain HTTP too.',
} as const

export interface Operation {
  /** `operationId`: what a generated client calls it. */
  readonly id: string
  readonly tag: keyof typeof tags
  readonly summary: string
  readonly answer: Answer
  /** Beside what follows from access, shapes and method: see `errors.ts`. */
  readonly refusals?: readonly ErrorStatus[]
  /** A body that would be accepted. */
  readonly body?: unknown
  /** For a body that is no JSON object checked by a schema. */
  readonly bodyType?: string
}

export interface Answer {
  readonly status: 200 | 201 | 202
  readonly content: Readonly<Record<string, Content>>
}

interface Content {
  /** Undefined: text that JSON Schema cannot describe. */
  readonly schema: AnswerSchema | undefined
  readonly example: unknown
}

export interface AnswerSchema {
  /** In the envelope of SPECIFICATION.md §2.7, alone or with the figures of its page; or bare (SPECIFICATION.md §4.1). */
  readonly form: 'data' | 'list' | 'bare'
  readonly schema: z.ZodType
}

/** By `METHOD /path`, as hono has it. */
export type Operations = Readonly<Record<string, Operation>>

type Status = Answer['status']

const json = (
  form: AnswerSchema['form'],
  schema: z.ZodType,
  status: Status,
  example: unknown,
): Answer => ({ status, content: { 'application/json': { schema: { form, schema }, example } } })

/** `{success: true, data}`. */
export const data = (schema: z.ZodType, example: unknown, status: Status = 200): Answer =>
  json('data', schema, status, { success: true, data: example })

/** `{success: true, data: [], meta}`; the example is one element. */
export const list = (element: z.ZodType, example: unknown): Answer =>
  json('list', element, 200, {
    success: true,
    data: [example],
    meta: { page: 1, limit: 50, total: 1 },
  })

/** Without the envelope. */
export const bare = (schema: z.ZodType, example: unknown, status: Status = 200): Answer =>
  json('bare', schema, status, example)

export const text = (mediaType: string, example: string): Answer => ({
  status: 200,
  content: { [mediaType]: { schema: undefined, example } },
})

/** One answer in several types, by `Accept`. */
export const either = (first: Answer, ...others: readonly Answer[]): Answer => ({
  ...first,
  content: Object.assign(
    {},
    first.content,
    ...others.map(({ content }) => content),
  ) as Answer['content'],
})
